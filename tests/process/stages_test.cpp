// Inboxes and stages where there is little room for them: as asked, smaller or none at all, results
// are right, and who runs the job hears of it once.
#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>

#include "bootstrap/join.hpp"
#include "process/answer_call.hpp"
#include "process/own_memory.hpp"
#include "process/ranks.hpp"
#include "runtime/shared_memory.hpp"
#include "transport/shm/provision.hpp"
#include "transport/shm/shm.hpp"
#include "transport/store.hpp"
#include "world/cases.hpp"

namespace paceline {
namespace {

using test::Buffers;
using test::Case;
using test::expect_fault;
using test::OwnMemory;
using test::run_ranks;

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr std::size_t kInbox = 2 * kMiB + 64 * kKiB;   // at most, of one of two ranks

// As in a sandbox: from now on this process gets no shared memory but files.
void forbid_anonymous() {
  if (!test::answer_call(SYS_memfd_create, test::kDenied))
    fail(Fault::resource, "this system has no seccomp");
}

Communicator join_in(const OwnMemory& small, int rank, int ranks, const std::string& store) {
  WorldConfig config;
  config.rank = rank;
  config.ranks = ranks;
  config.timeout_ms = config.start_timeout_ms = 20000;
  config.progress = Progress::caller;
  config.shm_bytes = 4u << 20;
  config.shm_dir = small.path();
  return join_world(std::make_shared<FileStore>(store), config);
}

// What a rank writes to stderr while it is there.
class Heard {
 public:
  Heard(const std::string& folder, int rank) : path_(str(folder, "/heard.", rank)) {
    if (!std::freopen(path_.c_str(), "w", stderr)) path_.clear();
  }
  std::string text() const {
    std::fflush(stderr);
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

// Whether rank 0, and nobody else, has heard one line, with these words.
std::string heard_once(const Heard& heard, int rank, const std::vector<std::string>& words) {
  const std::string text = heard.text();
  if (rank > 0 || words.empty()) return text.empty() ? "" : "told besides: " + text;
  if (std::count(text.begin(), text.end(), '\n') != 1) return "not one line: " + text;
  for (const std::string& word : words)
    if (text.find(word) == std::string::npos) return str("'", word, "' is missing in: ", text);
  return {};
}

std::string allreduce(Communicator& comm, std::size_t count, bool staged) {
  Buffers<float> buffers(Case{Collective::allreduce, "", comm.size(), count}, comm.rank());
  const Call call = buffers.call();
  const std::string why = comm.explain(call);
  const std::string name = why.substr(0, why.find_first_of(",:"));
  const bool is_staged = find_algorithm(Collective::allreduce, name).uses(Access::staging);
  if (is_staged != staged) return "the choice is " + why;
  comm.run(call);
  return buffers.check();
}

// Short and long calls on the world and on a communicator made later.
std::string works(Communicator& world, bool staged) {
  Communicator later = world.dup();
  for (Communicator* comm : {&world, &later})
    for (std::size_t count : {std::size_t{3}, std::size_t{5000}, std::size_t{700001}})
      for (int turn = 0; turn < 3; ++turn)
        if (const std::string bad = allreduce(*comm, count, staged); !bad.empty()) return bad;
  return {};
}

// In memory that all ranks reach, whose algorithms need no stages.
std::string sums_symmetric(Communicator& world) {
  const auto memory = world.allocate(16);
  auto* x = reinterpret_cast<float*>(memory->data());
  const Call call{.collective = Collective::allreduce, .type = Type::f32, .input = x, .output = x,
                  .count = 4, .algorithm = "symmetric"};
  if (world.explain(call).find("symmetric") != 0) return world.explain(call);
  for (int turn = 0; turn < 3; ++turn) {
    std::fill_n(x, 4, float(world.rank()));
    world.run(call);
    if (x[3] != float(world.size() * (world.size() - 1) / 2)) return str("sum is ", x[3]);
  }
  return {};
}

// On so many ranks in a folder with so much room for stages, all in all.
std::string in_room_for(int ranks, std::size_t inboxes, std::size_t bytes,
                        const std::function<std::string(Communicator&, const Heard&)>& body,
                        bool anonymous) {
  const OwnMemory small(inboxes + bytes);
  if (!small.is_there()) return {};
  return run_ranks(ranks, 60, [&](int rank, const std::string& folder) -> std::string {
    const Heard heard(folder, rank);
    if (!anonymous) forbid_anonymous();
    Communicator world = join_in(small, rank, ranks, folder);
    return body(world, heard);
  });
}

TEST_CASE("where the shm folder is full, stages are made in anonymous memory, with no warning") {
  const std::string bad = in_room_for(
      2, 2 * kInbox, 100 * kKiB,
      [](Communicator& world, const Heard& heard) -> std::string {
        const std::string wrong = works(world, true);
        return wrong.empty() ? heard_once(heard, world.rank(), {}) : wrong;
      },
      true);
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("where there is no memory besides, stages are smaller on all ranks") {
  const std::string bad = in_room_for(
      2, 2 * kInbox, 1 * kMiB,
      [](Communicator& world, const Heard& heard) -> std::string {
        const std::string wrong = works(world, true);
        if (!wrong.empty()) return wrong;
        return heard_once(heard, world.rank(),
                          {"the 2 ranks of this node want 8 MiB", "for stages of 4 MiB",
                           "they make do with stages of 2", "--shm-size", "PACELINE_STAGE_BYTES"});
      },
      false);
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("where there is no room at all, ranks send messages") {
  for (int ranks : {2, 4}) {
    const std::size_t inbox = ranks == 2 ? kInbox : 4 * (256 + 16) * kKiB;
    const std::string bad = in_room_for(
        ranks, std::size_t(ranks) * inbox, 64 * kKiB,
        [](Communicator& world, const Heard& heard) -> std::string {
          std::string first;
          test::for_each_case(world.size(), true, [&](const Case& c) {
            if (!first.empty() || test::is_load_store(c)) return;
            Buffers<float> buffers(c, world.rank());
            world.run(buffers.call());
            first = buffers.check();
          });
          if (first.empty()) first = works(world, false);
          if (first.empty()) first = sums_symmetric(world);
          if (!first.empty()) return first;
          return heard_once(heard, world.rank(), {"are free", "send messages", "--shm-size"});
        },
        false);
    CHECK_MESSAGE(bad.empty(), bad);
  }
}

// The first short call needs some pages, a long one as much as it shows in turns.
TEST_CASE("a later communicator that finds no room for its stage is an error on all its ranks") {
  for (const auto& [left, count] : {std::pair{8 * kKiB, 5}, std::pair{256 * kKiB, 200000}}) {
    const OwnMemory small(32 * kMiB);
    if (!small.is_there()) return;
    const auto body = [&](int rank, const std::string& folder) -> std::string {
      const Heard heard(folder, rank);
      Communicator world = join_in(small, rank, 2, folder);
      SharedFile rest;
      if (rank == 0) {
        forbid_anonymous();
        rest = SharedFile::create(small.path(), folder_space(small.path()).free - left);
      }
      if (std::string bad = allreduce(world, 5, true); !bad.empty()) return bad;
      Communicator later = world.dup();
      std::string bad = count > 5 ? allreduce(later, 5, true) : "";
      if (bad.empty())
        bad = expect_fault(Fault::resource,
                           {"rank 0 has no room", "--shm-size", "PACELINE_STAGE_BYTES"},
                           [&] { allreduce(later, std::size_t(count), true); });
      if (bad.empty()) bad = allreduce(world, 5, true);   // which lives on
      return bad.empty() ? heard_once(heard, rank, {}) : bad;
    };
    const std::string bad = run_ranks(2, 60, body);
    CHECK_MESSAGE(bad.empty(), count, ": ", bad);
  }
}

// Everybody's message to everybody, short and long, through rings.
std::string sends(Communicator& world) {
  for (std::size_t count : {1, 200, 3000}) {
    Buffers<float> data(Case{Collective::alltoall, "pairwise", world.size(), count}, world.rank());
    world.run(data.call());
    if (std::string bad = data.check(); !bad.empty()) return bad;
  }
  return {};
}

// As in a container, and in smaller ones; what a node's ranks take of it is counted in blocks.
TEST_CASE("inboxes of many ranks keep to what shm_bytes says, or to what there is") {
  struct Row {
    int ranks;
    std::size_t folder, most;
    bool anonymous;
    std::vector<std::string> said;
  };
  const std::vector<std::string> tight{"has no room for the messages of the 32 ranks",
                                       "they make do with", "--shm-size"};
  const Row rows[] = {
      {17, 64 * kMiB, 32 * kMiB, true, {}},       {32, 64 * kMiB, 32 * kMiB, false, {}},
      {64, 64 * kMiB, 32 * kMiB, false, {}},      {32, 4 * kMiB, 4 * kMiB, true, {}},
      {32, 16 * kMiB, 8 * kMiB, false, tight}};
  for (const Row& row : rows) {
    const OwnMemory small(row.folder);
    if (!small.is_there()) return;
    const auto body = [&](int rank, const std::string& folder) -> std::string {
      const Heard heard(folder, rank);
      if (!row.anonymous) forbid_anonymous();
      WorldConfig config;
      config.rank = rank;
      config.ranks = row.ranks;
      config.timeout_ms = config.start_timeout_ms = 100000;
      config.progress = Progress::caller;
      config.shm_dir = small.path();
      FileStore store(folder);
      StoreBootstrap meeting(store, "met", rank, row.ranks, std::chrono::seconds(100));
      std::size_t taken = 0;
      {
        const auto rings = make_shm(meeting, {.dir = small.path(), .stage_bytes = 1});
        taken = row.folder - folder_space(small.path()).free;
        meeting.allgather("looked");
        const std::size_t stages = rings->stages() ? std::size_t(row.ranks) * 80 * kKiB : 0;
        if (taken > row.most + stages) return str(taken, " bytes are taken");
      }
      meeting.allgather("gone");
      Communicator world = join_world(std::make_shared<FileStore>(folder), config);
      if (std::string bad = sends(world); !bad.empty()) return bad;
      const std::string text = heard.text();
      for (const std::string& word : row.said)
        if (rank == 0 && text.find(word) == std::string::npos) return "not said: " + text;
      return rank > 0 && !text.empty() ? "told besides: " + text : "";
    };
    const std::string bad = run_ranks(row.ranks, 100, body);
    CHECK_MESSAGE(bad.empty(), row.ranks, " ranks, ", row.folder / kMiB, " MiB: ", bad);
  }
}

TEST_CASE("ranks whose stages would differ in size are told so at once") {
  const std::string bad = run_ranks(2, 20, [](int rank, const std::string& folder) -> std::string {
    WorldConfig config;
    config.rank = rank;
    config.ranks = 2;
    config.stage_bytes = rank == 0 ? 8 * kMiB : 4 * kMiB;
    return expect_fault(Fault::usage, {"stage_bytes", "rank 0: 8 MiB", "rank 1: 4 MiB"},
                        [&] { join_world(std::make_shared<FileStore>(folder), config); });
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

}  // namespace
}  // namespace paceline
