// The pieces of the shm transport by themselves: ring, shared file, stores, matching.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "base/error.hpp"
#include "process/own_memory.hpp"
#include "transport/matcher.hpp"
#include "transport/shm/inbox.hpp"
#include "transport/shm/slab.hpp"
#include "transport/shm/status.hpp"
#include "transport/staging.hpp"
#include "transport/store.hpp"

namespace paceline {
namespace {

struct RingMemory {
  RingShape shape{256};
  std::vector<std::byte> bytes;
  RingMemory() : bytes(shape.bytes()) {}
  Ring end() { return Ring(bytes.data(), shape); }
};

TEST_CASE("a ring keeps order and content between two threads, many times round") {
  RingMemory memory;
  constexpr std::uint32_t kMessages = 5000;
  std::thread writer([&] {
    Ring ring = memory.end();
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      Cell64* cell = nullptr;
      while (!(cell = ring.free_cell())) std::this_thread::yield();
      cell->number = i;
      cell->bytes = 64 + i % 128;
      std::memset(Ring::payload(cell), static_cast<int>(i % 251), cell->bytes);
      ring.publish();
    }
  });
  Ring ring = memory.end();
  std::size_t wrong = 0;
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    Cell64* cell = nullptr;
    while (!(cell = ring.filled_cell())) std::this_thread::yield();
    wrong += cell->number != i || cell->bytes != 64 + i % 128;
    for (std::uint32_t k = 0; k < cell->bytes; ++k)
      wrong += Ring::payload(cell)[k] != static_cast<std::byte>(i % 251);
    ring.release();
  }
  writer.join();
  CHECK(wrong == 0);
}

TEST_CASE("a ring is full after as many cells as it has, and empty at first") {
  RingMemory memory;
  Ring writer = memory.end(), reader = memory.end();
  CHECK(reader.filled_cell() == nullptr);
  for (std::size_t i = 0; i < RingShape::kMostCells; ++i) {
    REQUIRE(writer.free_cell() != nullptr);
    writer.publish();
  }
  CHECK(writer.free_cell() == nullptr);
  REQUIRE(reader.filled_cell() != nullptr);
  reader.release();
  CHECK(writer.free_cell() != nullptr);
}

TEST_CASE("a reader's count that cannot be true does not open the ring") {
  RingMemory memory;
  Ring writer = memory.end();
  for (std::size_t i = 0; i < RingShape::kMostCells; ++i) {
    REQUIRE(writer.free_cell() != nullptr);
    writer.publish();
  }
  reinterpret_cast<std::atomic<std::uint64_t>*>(memory.bytes.data())->store(~std::uint64_t{0});
  CHECK(writer.free_cell() != nullptr);  // as if all had been freed: never more than was written
  for (std::size_t i = 0; i < RingShape::kMostCells; ++i) {
    REQUIRE(writer.free_cell() != nullptr);
    writer.publish();
  }
}

TEST_CASE(
    "shared memory has no name, no other readers, and the same content for whoever attaches") {
  SharedFile own = SharedFile::create("/dev/shm", 8192);
  const std::string descriptor = own.address().substr(own.address().find(' ') + 1);
  struct stat found{};
  REQUIRE(fstat(std::stoi(descriptor), &found) == 0);
  CHECK(found.st_nlink == 0);
  CHECK((found.st_mode & 0777) == 0600);
  SharedFile other = SharedFile::attach(own.address(), 8192);
  own.data()[77] = std::byte{42};
  CHECK(other.data()[77] == std::byte{42});
  CHECK_THROWS_AS(SharedFile::attach(own.address(), 4096), Error);  // not the size agreed
  own.close_descriptor();
  CHECK_THROWS_AS(SharedFile::attach(str(getpid(), " ", descriptor), 8192), Error);
}

TEST_CASE("no room in the file system is said at once, with what to do") {
  const test::OwnMemory memory(1u << 20);
  if (!memory.is_there()) return;
  try {
    SharedFile::create(memory.path(), 2u << 20);
    FAIL("a file of 2 MiB was made");
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::resource);
    CHECK(std::string(error.what()).find("PACELINE_SHM_BYTES") != std::string::npos);
  }
}

TEST_CASE("memory in no folder is as private, and found in the same way") {
  REQUIRE(SharedFile::can_be_anonymous());
  SharedFile own = SharedFile::create_anonymous(8192);
  struct stat found{};
  REQUIRE(fstat(own.descriptor(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
  CHECK(found.st_blocks * 512 >= 8192);   // reserved
  own.data()[8191] = std::byte{42};
  CHECK(SharedFile::attach(own.address(), 8192).data()[8191] == std::byte{42});
}

TEST_CASE("stages: whole where all fit, else besides, else in half of what is free, else none") {
  constexpr std::size_t kAsked = 1u << 20, kHead = Slab::file_bytes(1, 0);
  const auto of_each = [](std::size_t free, bool anonymous = false) {
    return provide(kAsked, std::vector<FolderSpace>(4, {free, anonymous}));
  };
  CHECK(of_each(4 * (kAsked + kHead)) == Provision{kAsked, true});
  CHECK(of_each(4 * (kAsked + kHead) - 1, true) == Provision{kAsked, false});
  CHECK(of_each(4 * (kAsked + kHead) - 1) == Provision{(512u << 10) - 8192, true});
  CHECK(of_each(8 * (kHead + (64u << 10))) == Provision{64u << 10, true});
  CHECK(of_each(8 * (kHead + (64u << 10)) - 1) == Provision{0, true});
  // The least decides, and one that has no memory besides.
  CHECK(provide(kAsked, {{1u << 30, true}, {4u << 20, true}, {0, true}}) ==
        Provision{kAsked, false});
  CHECK(provide(kAsked, {{1u << 20, true}, {1u << 20, false}}).bytes == 245760);
}

TEST_CASE("rings share the budget, whatever the number of ranks, and are never too short") {
  for (int p : {1, 2, 3, 8, 16, 17, 32, 64, 128, 200, 256}) {
    CAPTURE(p);
    const RingShape shape = ring_shape(32u << 20, p);
    const std::size_t all = inbox_bytes(shape, p) * std::size_t(p);
    CHECK(shape.cells * shape.cell_bytes <= 1u << 20);
    CHECK(shape.cell_bytes % 64 == 0);
    CHECK((shape.cells & (shape.cells - 1)) == 0);
    CHECK(shape.cell_bytes >= 256);
    CHECK(shape.cells >= 4);
    if (p <= 16) CHECK(shape.cells * shape.cell_bytes >= 64u << 10);
    // As many as share it in cells that are long enough; then they take more, and say so.
    if (p <= 128) CHECK(all <= (32u << 20) * (p <= 16 ? 5 : 4) / 4);
    if (p == 17 || p == 32 || p == 64) CHECK(all <= 32u << 20);
    const ShmConfig config{.bytes = 32u << 20};
    const std::vector<RingShape> shapes(std::size_t(p), shape);
    const std::string said = shortage_of_rings(config, shapes);
    CHECK(said.empty() == (p <= 128));
  }
}

TEST_CASE("stores hand over what was set, and name what was not") {
  char folder[] = "/tmp/paceline-store-XXXXXX";
  REQUIRE(mkdtemp(folder));
  FileStore files(folder);
  MemoryStore memory;
  for (Store* store : {static_cast<Store*>(&files), static_cast<Store*>(&memory)}) {
    store->set("a/b", std::string("\0x\n", 3));
    CHECK(store->get("a/b", std::chrono::milliseconds(100)) == std::string("\0x\n", 3));
    CHECK_THROWS_WITH_AS(store->get("c", std::chrono::milliseconds(20)), doctest::Contains("'c'"),
                         Error);
    std::thread late([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      store->set("d", "later");
    });
    CHECK(store->get("d", std::chrono::seconds(10)) == "later");
    late.join();
  }
  std::filesystem::remove_all(folder);
}

struct Early {
  int what = 0;
};

TEST_CASE("messages match by their key, whichever side comes first") {
  Matcher<Early> matcher;
  Transfer a, b;
  a.key.seq = 1;
  b.key.seq = 2;
  Early found;
  CHECK_FALSE(matcher.post(a, found));
  CHECK(matcher.take(b.key) == nullptr);
  matcher.keep(b.key).what = 7;
  CHECK(matcher.post(b, found));
  CHECK(found.what == 7);
  CHECK(matcher.take(a.key) == &a);
  CHECK(matcher.take(a.key) == nullptr);
  CHECK_FALSE(matcher.post(a, found));
  matcher.cancel(a);
  CHECK(matcher.take(a.key) == nullptr);
}

TEST_CASE("early messages are found by their call, and by their communicator") {
  Matcher<Early> matcher;
  for (const std::uint64_t context : {5, 6, 7})
    for (const std::uint32_t number : {0u, 1u, 2u, 0xffffffffu})
      for (const std::int32_t seq : {-1, 0, 3}) matcher.keep({context, number, 2, true, seq});
  const auto count = [&](const KeyRange& calls) {
    int found = 0;
    matcher.visit(calls, [&](const Key& key, const Early&) {
      CHECK(calls.has(key));
      ++found;
    });
    return found;
  };
  CHECK(count({6, 1}) == 3);
  CHECK(count({6, 0xffffffffu}) == 3);
  CHECK(count({6, 3}) == 0);
  CHECK(count({6}) == 12);
  CHECK(count({8}) == 0);
  matcher.drop_early([](const Key& key, const Early&) { return key.number == 1; });
  CHECK(count({6, 1}) == 0);
  CHECK(count({6}) == 9);
}

TEST_CASE("whom a rank waits for is shown until it says anew what it is about") {
  InboxHeader inbox{};
  CHECK(shm::status_in(inbox).awaits == -1);
  const PeerStatus doing{7, {8, 9}, 10, true};
  shm::publish_status(inbox, doing);
  CHECK(shm::status_in(inbox).awaits == -1);
  for (const int rank : {3, 0, -1, 5}) {
    shm::publish_awaited(inbox, rank);
    const PeerStatus read = shm::status_in(inbox);
    CHECK(read.awaits == rank);
    CHECK(read.context == 7);
    CHECK(read.fingerprint == doing.fingerprint);
    CHECK(read.number == 10);
    CHECK(read.inside);
  }
  shm::publish_status(inbox, {7, {8, 9}, 10, false});
  CHECK(shm::status_in(inbox).awaits == -1);
  inbox.version.fetch_add(1);   // in the middle of a change
  CHECK(shm::status_in(inbox).number == 0);
}

}  // namespace
}  // namespace paceline
