// A ring between two threads: what the writer has put into a cell is what the reader finds there.
// The thread sanitizer runs it too (as short.ring_test), and sees an order of memory that is too
// weak though this machine keeps it.
#include "transport/shm/ring.hpp"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

namespace paceline {
namespace {

constexpr RingShape kShape{.cell_bytes = 256, .cells = RingShape::kLeastCells};
constexpr std::uint64_t kCells = 20000;

void put(Cell64* c, std::uint64_t number) {
  c->what = number;
  c->bytes = 1 + number % 256;
  for (std::uint32_t i = 0; i < c->bytes; ++i) Ring::payload(c)[i] = std::byte(number + i);
}

bool holds(Cell64* c, std::uint64_t number) {
  if (c->what != number || c->bytes != 1 + number % 256) return false;
  for (std::uint32_t i = 0; i < c->bytes; ++i)
    if (Ring::payload(c)[i] != std::byte(number + i)) return false;
  return true;
}

}  // namespace

TEST_CASE("ring: cells go from one thread to another, whole and in turn, round and round") {
  std::vector<Cell64> lines(kShape.bytes() / sizeof(Cell64) + 1);
  auto* memory = reinterpret_cast<std::byte*>(lines.data());
  std::thread writer([memory] {
    Ring ring(memory, kShape);
    for (std::uint64_t number = 0; number < kCells;)
      if (Cell64* c = ring.free_cell()) {
        put(c, number++);
        ring.publish();
      } else {
        std::this_thread::yield();
      }
  });
  Ring ring(memory, kShape);
  std::uint64_t wrong = 0;
  for (std::uint64_t number = 0; number < kCells;)
    if (Cell64* c = ring.filled_cell()) {
      wrong += !holds(c, number++);
      ring.release();
    } else {
      std::this_thread::yield();
    }
  writer.join();
  CHECK(wrong == 0);
}

}  // namespace paceline
