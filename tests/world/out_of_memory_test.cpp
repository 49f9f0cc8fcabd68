// An allocation failure, or another exception, in the thread that drives a rank: the waiting ranks
// get an error, and the program gets it when it looks.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <stdexcept>
#include <thread>

#include "bootstrap/open_world.hpp"
#include "expect_fault.hpp"
#include "loop/loop.hpp"
#include "world/passed_on.hpp"

namespace paceline {
namespace {

constexpr int kRanks = 3, kStarved = 1;

// The exception to throw, and the number of times it was thrown.
struct Refusal {
  void (*raise)() = nullptr;   // null: nothing
  std::atomic<bool> armed{false};
  std::atomic<int> times{0};
};

// progress() throws, once that is armed.
class Stingy : public test::PassedOn {
 public:
  Stingy(std::unique_ptr<Transport> below, Refusal* refusal)
      : PassedOn(std::move(below)), refusal_(refusal) {}

  bool progress() override {
    if (refusal_ && refusal_->raise && refusal_->armed) {
      ++refusal_->times;
      refusal_->raise();
    }
    return PassedOn::progress();
  }

 private:
  Refusal* refusal_;
};

struct Kind {
  const char* what;
  void (*raise)();
  Fault fault;
  const char* text;
};

const Kind kKinds[] = {
    {"memory", [] { throw std::bad_alloc(); }, Fault::resource, "got no memory"},
    {"standard", [] { throw std::out_of_range("no such thing"); }, Fault::internal,
     "rank 1 cannot go on: no such thing"},
    {"own", [] { fail(Fault::refusal, "it is shut"); }, Fault::refusal,
     "rank 1 cannot go on: it is shut"},
    {"unknown", [] { throw 42; }, Fault::internal, "rank 1 cannot go on: an exception of unknown"},
};

struct Ends {
  std::string waits, computes;   // of those that wait in the call, and of the one that does not
  int refusals = 0;
};

// The ranks make a call together; one of them throws while the call is under way.
Ends meet(const Kind& kind, Progress progress, bool refuses) {
  LoopNet net(kRanks, {});
  Refusal refusal{refuses ? kind.raise : nullptr};
  std::atomic<int> heard{0};
  std::string ends[kRanks];
  const auto run_rank = [&](int rank) {
    WorldConfig config;
    config.progress = rank == kStarved ? progress : Progress::caller;
    config.timeout_ms = 20000;
    Communicator world = join_transport(
        std::make_unique<Stingy>(net.endpoint(rank), rank == kStarved ? &refusal : nullptr),
        config);
    std::vector<float> data(1000, 1.0f);
    Call call;
    call.collective = Collective::allreduce;
    call.type = Type::f32;
    call.input = call.output = data.data();
    call.count = data.size();
    call.algorithm = "ring";
    const auto fails = [&] {
      Request request = world.start(call);
      if (rank == kStarved) refusal.armed = true;
      const bool computes = rank == kStarved && progress == Progress::thread;
      while (computes && heard < kRanks - 1)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      request.wait();
    };
    // The others begin once the call is bound to fail.
    while (rank != kStarved && !refusal.armed && heard == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ends[rank] = test::expect_fault(kind.fault, {"rank 1", kind.text}, fails);
    ++heard;
    if (rank == kStarved) refusal.armed = false;   // what follows is its good-bye
    if (refuses && rank == kStarved && world.broken().empty())
      ends[rank] += "; it does not say that it is broken";
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back(run_rank, rank);
  for (std::thread& thread : threads) thread.join();
  return {ends[0] + ends[2], ends[kStarved], refusal.times};
}

TEST_CASE("what is thrown while a rank is driven is told to all ranks, with its text") {
  for (const Kind& kind : kKinds)
    for (const Progress progress : {Progress::thread, Progress::caller}) {
      CAPTURE(kind.what);
      CAPTURE(progress == Progress::thread);
      const Ends ends = meet(kind, progress, true);
      CHECK(ends.waits == "");
      CHECK(ends.computes == "");
      CHECK(ends.refusals > 0);
    }
}

TEST_CASE("the same call ends well where nothing is thrown") {
  const Ends ends = meet(kKinds[0], Progress::thread, false);
  CHECK(ends.waits == "nothing was thrownnothing was thrown");
  CHECK(ends.computes == "nothing was thrown");
  CHECK(ends.refusals == 0);
}

}  // namespace
}  // namespace paceline
