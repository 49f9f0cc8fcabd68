// Stages where there is little room for them: as asked, smaller or none at all, results are right,
// and who runs the job hears of it once.
#include <doctest/doctest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>

#include "process/own_memory.hpp"
#include "process/ranks.hpp"
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
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(rules), rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
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
  const bool is_staged = find_algorithm(Collective::allreduce, name).staged;
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
std::string sums_shared(Communicator& world) {
  const auto memory = world.allocate(16);
  auto* x = reinterpret_cast<float*>(memory->data());
  const Call call{.collective = Collective::allreduce, .type = Type::f32, .input = x, .output = x,
                  .count = 4, .algorithm = "shared"};
  if (world.explain(call).find("shared") != 0) return world.explain(call);
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

TEST_CASE("where the folder is full, stages are made besides, and nobody need know") {
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
            if (!first.empty() || test::is_straight(c)) return;
            Buffers<float> buffers(c, world.rank());
            world.run(buffers.call());
            first = buffers.check();
          });
          if (first.empty()) first = works(world, false);
          if (first.empty()) first = sums_shared(world);
          if (!first.empty()) return first;
          return heard_once(heard, world.rank(), {"are free", "send messages", "--shm-size"});
        },
        false);
    CHECK_MESSAGE(bad.empty(), bad);
  }
}

TEST_CASE("a later communicator that finds no room for one stage is an error on all its ranks") {
  const std::string bad = in_room_for(
      2, 2 * kInbox, 8 * kMiB + 64 * kKiB,   // for the world's
      [](Communicator& world, const Heard& heard) -> std::string {
        if (world.rank() == 0) forbid_anonymous();
        Communicator later = world.dup();
        std::string bad = expect_fault(
            Fault::resource, {"rank 0 has no room", "--shm-size", "PACELINE_STAGE_BYTES"},
            [&] { allreduce(later, 5, true); });
        if (bad.empty()) bad = allreduce(world, 5, true);   // which lives on
        return bad.empty() ? heard_once(heard, world.rank(), {}) : bad;
      },
      true);
  CHECK_MESSAGE(bad.empty(), bad);
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
