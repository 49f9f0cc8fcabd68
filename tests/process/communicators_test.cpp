// Many communicators at once, and what they take: counted in blocks that the system has given, not
// in lengths of files, which are sparse.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "engine/shm/shm_channel.hpp"
#include "process/ranks.hpp"
#include "world/cases.hpp"

namespace paceline {
namespace {

using test::Buffers;
using test::Case;
using test::join;
using test::run_ranks;

constexpr std::size_t kMiB = 1u << 20, kMost = 256u << 10;   // of a communicator of short calls

// Whether memory comes in pages of 4 KiB, as the bounds below have it; the test is else skipped.
bool has_small_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  const std::string said(std::istreambuf_iterator<char>(file), {});   // "always [never] ..."
  bool is_small = sysconf(_SC_PAGESIZE) == 4096;
  for (const char* forced : {"[always]", "[within_size]", "[force]"})
    is_small = is_small && said.find(forced) == said.npos;
  if (!is_small) test::skip("shared memory comes in pages of more than 4 KiB here");
  return is_small;
}

// Bytes of memory behind this process's files without a name.
std::size_t held() {
  std::size_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    struct stat found{};
    if (stat(entry.path().c_str(), &found) == 0 && S_ISREG(found.st_mode) && found.st_nlink == 0)
      bytes += static_cast<std::size_t>(found.st_blocks) * 512;
  }
  return bytes;
}

// Bytes of its own that are in memory; a sanitizer's are no communicator's.
std::size_t own() {
  if (test::kHasSanitizer) return 0;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::size_t kib = 0; word == "RssAnon:" && status >> kib) return kib << 10;
  return 0;
}

template <class T = float>
std::string run_once(Communicator& comm, Collective collective, std::size_t count) {
  const int root = has_root(collective) ? comm.size() - 1 : 0;
  Buffers<T> data(Case{collective, "", comm.size(), count, root}, comm.rank());
  comm.run(data.call());
  return data.check();
}

// Messages of up to so many bytes, of every kind that shows its data in stages.
std::string short_calls(Communicator& comm, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float), part = count / std::size_t(comm.size());
  const std::pair<Collective, std::size_t> calls[] = {
      {Collective::allreduce, count},    {Collective::broadcast, count},
      {Collective::reduce, count},       {Collective::allgather, part},
      {Collective::reduce_scatter, part}, {Collective::alltoall, part},
      {Collective::allreduce, 1},        {Collective::barrier, 0}};
  for (const auto& [collective, n] : calls)
    if (std::string bad = run_once(comm, collective, n); !bad.empty()) return bad;
  return {};
}

TEST_CASE("hundreds of communicators live at once, and each keeps its place") {
  const std::string bad = run_ranks(2, 100, [](int rank, const std::string& folder) -> std::string {
    Communicator world = join(rank, 2, folder);
    std::vector<Communicator> all;
    for (int i = 0; i < 700; ++i) {
      all.push_back(world.dup());
      if (std::string bad = run_once(all.back(), Collective::allreduce, 3); !bad.empty())
        return str("communicator ", i, ": ", bad);
      if (i % 3 == 2) all.erase(all.begin() + i / 3);   // places are used again
    }
    for (Communicator& one : all)
      for (std::size_t count : {2, 900})
        if (std::string bad = run_once(one, Collective::allreduce, count); !bad.empty()) return bad;
    return {};
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("a communicator of short calls takes less than 256 KiB of each rank") {
  if (!has_small_pages()) return;
  constexpr int kMany = 40;
  for (int p : {2, 5}) {
    const std::string bad =
        run_ranks(p, 100, [&](int rank, const std::string& folder) -> std::string {
          Communicator world = join(rank, p, folder);
          const auto calls = [](Communicator& one) {
            std::string bad;
            for (int turn = 0; bad.empty() && turn < 4; ++turn)
              bad = short_calls(one, shm_profile().short_slot);
            for (int turn = 0; bad.empty() && turn < 40; ++turn)   // slots of these rotate
              bad = run_once<double>(one, Collective::alltoall,
                                     shm_profile().short_slot / sizeof(double));
            return bad;
          };
          if (std::string bad = calls(world); !bad.empty()) return bad;
          const std::size_t held_before = held(), own_before = own();
          std::vector<Communicator> all;
          for (int i = 0; i < kMany; ++i) {
            all.push_back(world.dup());
            if (std::string bad = calls(all.back()); !bad.empty()) return bad;
          }
          const std::size_t shared = (held() - held_before) / kMany;
          const std::size_t each = shared + (own() - std::min(own_before, own())) / kMany;
          if (shared == 0) return "its stage is not seen";
          return each < kMost ? "" : str(each, " bytes each, ", shared, " of them shared");
        });
    CHECK_MESSAGE(bad.empty(), p, " ranks: ", bad);
  }
}

TEST_CASE("a stage grows with the first long call, and its memory comes back") {
  if (!has_small_pages()) return;
  const std::string bad = run_ranks(3, 100, [](int rank, const std::string& folder) -> std::string {
    Communicator world = join(rank, 3, folder);
    if (std::string bad = run_once(world, Collective::allreduce, 1 << 20); !bad.empty()) return bad;
    std::size_t first = 0;
    for (int turn = 0; turn < 12; ++turn) {
      {
        std::vector<Communicator> some;
        for (int i = 0; i < 4; ++i) some.push_back(world.dup());
        for (std::size_t count : {3, 20000, 100, 1 << 20, 700, 300000})
          for (Communicator& one : some)
            if (std::string bad = run_once(one, Collective::allreduce, count); !bad.empty())
              return str("turn ", turn, ", ", count, " elements: ", bad);
        if (held() < 4 * kMiB) return str("only ", held(), " bytes for long calls");
      }
      if (std::string bad = run_once(world, Collective::barrier, 0); !bad.empty()) return bad;
      const Communicator last = world.dup();   // whoever makes one looks what came back
      if (turn == 0) first = held();
      if (held() > first + 3 * kMiB) return str(held(), " bytes in turn ", turn, ", not ", first);
    }
    return {};
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

// Ranks may still look for the stages of one that broke; its name is taken for long, not for ever.
TEST_CASE("of communicators that broke and were closed the last few thousand names are known") {
  constexpr std::uint64_t kMany = 4100;
  const std::string bad = run_ranks(2, 60, [](int rank, const std::string& folder) -> std::string {
    Communicator world = join(rank, 2, folder);
    if (rank == 0) {
      for (std::uint64_t tag = 1; tag <= kMany; ++tag) world.subgroup({0, 1}, tag).abort("enough");
      world.subgroup({0, 1}, 1);   // those before the last few thousand
    }
    world.run({.collective = Collective::barrier});
    if (rank != 0) return "";
    return test::expect_fault(Fault::usage, {"its tag has named another"}, [&] {
      (void)world.subgroup({0, 1}, kMany);
    });
  });
  CHECK(bad == "");
}

}  // namespace
}  // namespace paceline
