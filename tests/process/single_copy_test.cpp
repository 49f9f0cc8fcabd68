// The system copies between ranks' buffers: what comes out, where it is not let, and what happens
// when it stops half-way.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "bootstrap/join.hpp"
#include "bootstrap/options_config.hpp"
#include "process/answer_call.hpp"
#include "process/ranks.hpp"
#include "world/collective_case.hpp"

namespace paceline {
namespace {

using test::answer_call;
using test::Buffers;
using test::can_attach;
using test::Case;
using test::expect_fault;
using test::join;
using test::kDenied;
using test::kKilled;
using test::kMissing;
using test::run_ranks;

constexpr std::size_t kLong = 9u << 20;   // bytes, more than from where on it is chosen

Call broadcast_of(std::vector<std::byte>& data, int root = 0) {
  Call call;
  call.collective = Collective::broadcast;
  call.output = data.data();
  call.count = data.size();
  call.root = root;
  return call;
}

std::byte filling(std::size_t i, int turn) {
  return std::byte(i * 7 + i / 4096 + static_cast<std::size_t>(turn) * 31);
}

std::string broadcast_once(Communicator& world, std::size_t bytes, int root, int turn) {
  std::vector<std::byte> data(bytes);
  if (world.rank() == root)
    for (std::size_t i = 0; i < bytes; ++i) data[i] = filling(i, turn);
  world.run(broadcast_of(data, root));
  for (std::size_t i = 0; i < bytes; ++i)
    if (data[i] != filling(i, turn))
      return str("rank ", world.rank(), ", root ", root, ", ", bytes, " bytes: byte ", i);
  return {};
}

// Runs `body` among ranks that are attached.
template <class Body>
std::string run_attached(int p, Body&& body, const test::Ends& ends = {}) {
  if (!can_attach()) return {};
  return run_ranks(p, 60, [&](int rank, const std::string& folder) -> std::string {
    Communicator world = join(rank, p, folder);
    if constexpr (std::is_invocable_v<Body, Communicator&, const std::string&>)
      return body(world, folder);
    else
      return body(world);
  }, ends);
}

}  // namespace

TEST_CASE("attached: every count and root, on 2 to 4 ranks, also of long messages") {
  for (int p : {2, 3, 4}) {
    const std::string bad = run_attached(p, [&](Communicator& world) -> std::string {
      for (const std::size_t count : {0, 1, 2, p - 1, p + 1, 4097, 3 << 20})
        for (int root = 0; root < p; ++root) {
          Buffers<float> data({Collective::broadcast, "single_copy", p, count, root}, world.rank());
          world.run(data.call());
          if (std::string wrong = data.check(); !wrong.empty()) return wrong;
        }
      return {};
    });
    CHECK_MESSAGE(bad.empty(), bad);
  }
}

TEST_CASE("attached: chosen by itself, in parts of the world, in plans, with a thread") {
  if (!can_attach()) return;
  const std::string bad = run_ranks(3, 60, [&](int rank, const std::string& folder) -> std::string {
    Communicator world = join(rank, 3, folder, 20000, Progress::thread);
    Communicator pair = world.split(rank == 1 ? 1 : 0, -rank);   // ranks 2 and 0
    if (rank == 1) return {};
    for (int turn = 0; turn < 6; ++turn) {
      std::string bad = broadcast_once(pair, kLong + std::size_t(turn), turn % 2, turn);
      if (bad.empty()) bad = broadcast_once(pair, 100, turn % 2, turn);   // through the same lines
      if (!bad.empty()) return bad;
    }
    std::vector<std::byte> data(kLong);
    if (const std::string told = pair.explain(broadcast_of(data)); !told.starts_with("single_copy"))
      return told;
    Plan plan = pair.plan(broadcast_of(data));
    for (int turn = 0; turn < 3; ++turn) {
      std::fill(data.begin(), data.end(), std::byte(10 * turn + rank));
      plan.start().wait();
      if (data[kLong / 4] != std::byte(10 * turn + 2) || data[kLong - 1] != data[kLong / 4])
        return str("turn ", turn, " of the plan");
    }
    return {};
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("attached: where one rank may not, or does not want to, all do without and know why") {
  struct Row {
    const char* why;
    void (*spoil)();
  };
  const Row rows[] = {
      {"rank 1 may not read the memory of rank 0: Operation not permitted",
       [] { answer_call(SYS_process_vm_readv, kDenied); }},
      {"rank 1 may not write the memory of rank 0: Operation not permitted",
       [] { answer_call(SYS_process_vm_writev, kDenied); }},
      {"the system has no pidfd_open", [] { answer_call(SYS_pidfd_open, kDenied); }},
      {"PACELINE_SINGLE_COPY=off on rank 1", [] { setenv("PACELINE_SINGLE_COPY", "off", 1); }},
  };
  for (const Row& row : rows) {
    if (!can_attach()) return;
    const std::string bad =
        run_ranks(2, 60, [&](int rank, const std::string& folder) -> std::string {
          if (rank == 1) row.spoil();
          WorldConfig config = config_from_options();
          config.rank = rank;
          config.ranks = 2;
          Communicator world = join_world(std::make_shared<FileStore>(folder), config);
          std::vector<std::byte> data(kLong);
          const std::string told = world.explain(broadcast_of(data));
          if (!told.starts_with("staged") || told.find(row.why) == told.npos) return told;
          return broadcast_once(world, kLong, 1, 1);
        });
    CHECK_MESSAGE(bad.empty(), bad);
  }
}

// One rank cannot read, write, or do either; or it is another user, whom the system trusts less.
TEST_CASE("attached: copies that the system refuses later are sent as messages") {
  struct Row {
    const char* what;
    std::string (*spoil)();
  };
  const Row rows[] = {
      {"reads", [] { answer_call(SYS_process_vm_readv, kDenied); return std::string(); }},
      {"writes", [] { answer_call(SYS_process_vm_writev, kMissing); return std::string(); }},
      {"both", [] {
         answer_call(SYS_process_vm_readv, kDenied);
         answer_call(SYS_process_vm_writev, kDenied);
         return std::string();
       }},
      {"user", [] {
         return geteuid() == 0 && setuid(65534) != 0 ? std::string("no other user") : "";
       }},
  };
  for (const Row& row : rows)
    for (const int p : {2, 3})
      for (int spoilt = 0; spoilt < p; ++spoilt) {
        const std::string bad = run_attached(p, [&](Communicator& world) -> std::string {
          const auto all_roots = [&](std::size_t count) -> std::string {
            for (int root = 0; root < p; ++root) {
              Buffers<float> data({Collective::broadcast, "single_copy", p, count, root},
                                  world.rank());
              world.run(data.call());
              if (std::string wrong = data.check(); !wrong.empty()) return wrong;
            }
            return {};
          };
          std::string bad = all_roots(5000);
          if (bad.empty() && world.rank() == spoilt) bad = row.spoil();
          for (const std::size_t count : {0, 1, p - 1, 4097, 3 << 20})
            if (bad.empty()) bad = all_roots(count);
          return bad;
        });
        CHECK_MESSAGE(bad.empty(), str(row.what, ", ", p, " ranks, rank ", spoilt, ": ", bad));
      }
}

// Three drives may send the whole message. Then both ranks make another call.
TEST_CASE("attached: a root that dies while it sends such a message is named") {
  if (!can_attach()) return;
  const std::string bad = run_ranks(2, 60, [](int rank, const std::string& folder) -> std::string {
    Communicator world = join(rank, 2, folder, 20000, Progress::caller);
    std::vector<std::byte> data(8 * kLong);
    const Call call = broadcast_of(data);
    world.run(call);
    if (rank == 1) {
      answer_call(SYS_process_vm_readv, kDenied);
      return expect_fault(Fault::lost, {"rank 0 is lost: its process has died"},
                          [&] { for (;;) world.run(call); });
    }
    for (bool has_sent = true; has_sent;) {
      Request request = world.start(call);
      for (int i = 0; i < 3; ++i) {
        has_sent = request.test();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    raise(SIGKILL);
    return {};
  }, {{0, SIGKILL}});
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("attached: what the system stops half-way is an error that names the peer") {
  const auto run = [&](int spoilt, std::vector<std::string> words, auto&& spoil) {
    return run_attached(2, [&](Communicator& world) -> std::string {
      std::vector<std::byte> data(kLong);
      Call call = broadcast_of(data);
      world.run(call);
      if (world.rank() == spoilt) spoil(call);
      const std::string bad = expect_fault(Fault::resource, words, [&] { world.run(call); });
      return bad.empty() ? expect_fault(Fault::resource, words, [&] { world.run(call); }) : bad;
    });
  };
  // Pages that neither may write.
  const std::string bad_address =
      run(1, {"the buffer of rank", "Bad address"}, [](Call& call) {
        call.output = mmap(nullptr, kLong, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      });
  CHECK_MESSAGE(bad_address.empty(), bad_address);
}

TEST_CASE("attached: a peer that dies half-way is named") {
  for (const long half : {SYS_process_vm_readv, SYS_process_vm_writev}) {
    const int mortal = half == SYS_process_vm_readv ? 1 : 0;   // the root is who writes
    const std::string bad = run_attached(2, [&](Communicator& world) -> std::string {
      std::vector<std::byte> data(kLong);
      world.run(broadcast_of(data));
      if (world.rank() == mortal) {
        answer_call(half, kKilled);
        world.run(broadcast_of(data));
        return "it lives";
      }
      return expect_fault(Fault::lost, {str("rank ", mortal, " is lost: its process has died")},
                          [&] { world.run(broadcast_of(data)); });
    }, {{mortal, SIGSYS}});   // which the filter sends
    CHECK_MESSAGE(bad.empty(), bad);
  }
}

// Its caller may free the buffer, and use the memory for something else. Who leaves says nothing to
// those who are not waiting for it.
TEST_CASE("attached: nobody writes into the buffer of a rank that has given up") {
  const auto body = [](Communicator& world, const std::string& folder) -> std::string {
    std::vector<std::byte> data(kLong, std::byte{1});
    const Call call = broadcast_of(data);
    world.run(call);
    if (world.rank() == 0) {
      test::await_note(folder, "left");
      std::fill(data.begin(), data.end(), std::byte{2});
      const std::string bad = expect_fault(Fault::lost, {"rank 1 is lost: it has left"},
                                           [&] { world.run(call); });
      test::note(folder, "tried");
      return bad;
    }
    const Request request = world.start(call);   // it has come, and waits for the root
    world.leave();
    std::fill(data.begin(), data.end(), std::byte{9});
    test::note(folder, "left");
    test::await_note(folder, "tried");
    for (const std::byte one : data)
      if (one != std::byte{9}) return "the root has written into it";
    return {};
  };
  const std::string bad = run_attached(2, body);
  CHECK_MESSAGE(bad.empty(), bad);
}

}  // namespace paceline
