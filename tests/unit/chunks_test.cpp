#include <doctest/doctest.h>

#include <algorithm>

#include "transport/mpi/chunks.hpp"

namespace paceline::mpi {
namespace {

// Returns what is wrong with the chunks of such a message; null: nothing.
const char* fault(const Chunks& chunks, std::size_t total, std::size_t most) {
  std::size_t end = 0;
  for (std::uint32_t i = 0; i < chunks.count; ++i) {
    if (chunks.begin(i) != end) return "they do not follow each other";
    if (chunks.begin(i) % kCacheLine != 0) return "one begins inside a cache line";
    if (chunks.length(i) > most) return "one is too long";
    if (chunks.length(i) == 0 && total > 0) return "one is empty";
    end += chunks.length(i);
  }
  return end == total ? nullptr : "they do not end with the message";
}

}  // namespace

TEST_CASE("chunks: both sides cut a message alike by its length and their number") {
  for (const std::size_t most : {64u, 192u, 960u, 4096u})
    for (std::size_t total = 0; total < 9000; total += total < 1100 ? 1 : 61) {
      CAPTURE(most);
      CAPTURE(total);
      const std::uint32_t number = Chunks::number(total, most);
      CHECK(fault(Chunks(total, number), total, most) == nullptr);
      CHECK(number == std::max<std::size_t>(1, (total + most - 1) / most));
    }
  CHECK(fault(Chunks(1000, 2), 1000, 192) != nullptr);   // too few
  CHECK(fault(Chunks(1000, 40), 1000, 192) != nullptr);  // more than there are lines
}

}  // namespace paceline::mpi
