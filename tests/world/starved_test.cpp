// Memory that is refused to the library's own thread while it receives, and nowhere else: the ranks
// that wait hear of it, and so does the program once it looks.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include "expect_fault.hpp"
#include "runtime/session.hpp"
#include "transport/loop/loop.hpp"

namespace paceline {
namespace {

constexpr int kRanks = 3, kStarved = 1;

// Passes on what it is asked for, except that threads other than its maker's have no memory.
class Stingy : public Transport {
 public:
  Stingy(std::unique_ptr<Transport> below, bool refuses, std::atomic<int>& refusals)
      : below_(std::move(below)), refuses_(refuses), refusals_(refusals) {}

  bool progress() override {
    if (refuses_ && std::this_thread::get_id() != maker_) {
      ++refusals_;
      throw std::bad_alloc();
    }
    return below_->progress();
  }
  std::string_view name() const override { return "stingy loop"; }
  int rank() const override { return below_->rank(); }
  int ranks() const override { return below_->ranks(); }
  void listen(Listener* listener) override { below_->listen(listener); }
  void send(Transfer& transfer) override { below_->send(transfer); }
  void recv(Transfer& transfer) override { below_->recv(transfer); }
  void cancel(Transfer& transfer) override { below_->cancel(transfer); }
  void unexpected(
      const std::function<void(int, const Key&, const Fingerprint&)>& visit) const override {
    below_->unexpected(visit);
  }
  void abort(int peer, std::uint64_t context, const std::string& why) override {
    below_->abort(peer, context, why);
  }
  void leave() override { below_->leave(); }
  void check_peers() override { below_->check_peers(); }
  void rest(int timeout_us, const std::function<bool()>& stirs) override {
    below_->rest(timeout_us, stirs);
  }
  void wake() override { below_->wake(); }
  void announce(const Doing& doing) override { below_->announce(doing); }
  Doing last_heard(int peer) const override { return below_->last_heard(peer); }

 private:
  std::unique_ptr<Transport> below_;
  const std::thread::id maker_ = std::this_thread::get_id();
  bool refuses_;
  std::atomic<int>& refusals_;
};

struct Ends {
  std::string waits, computes;   // of those that wait in the call, and of the one that does not
  int refusals = 0;
};

// The ranks make a call together; one has its thread do the work. It may be refused memory for it.
Ends meet(bool refuses) {
  LoopNet net(kRanks, {});
  std::atomic<int> refusals{0}, heard{0};
  std::string ends[kRanks];
  const auto run_rank = [&](int rank) {
    WorldConfig config;
    config.progress = rank == kStarved ? Progress::thread : Progress::caller;
    config.timeout_ms = 20000;
    const bool is_refused = refuses && rank == kStarved;
    Communicator world = join_transport(
        std::make_unique<Stingy>(net.endpoint(rank), is_refused, refusals), config);
    std::vector<float> data(1000, 1.0f);
    Call call;
    call.collective = Collective::allreduce;
    call.type = Type::f32;
    call.input = call.output = data.data();
    call.count = data.size();
    call.algorithm = "ring";
    const auto fails = [&] {
      Request request = world.start(call);
      while (rank == kStarved && heard < kRanks - 1)   // it computes
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      request.wait();
    };
    ends[rank] = test::expect_fault(Fault::resource, {"rank 1", "refused memory"}, fails);
    ++heard;
    if (is_refused && world.broken().empty()) ends[rank] += "; it does not say that it is broken";
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back(run_rank, rank);
  for (std::thread& thread : threads) thread.join();
  return {ends[0] + ends[2], ends[kStarved], refusals};
}

TEST_CASE("memory refused to the thread that receives is told to all ranks") {
  const Ends ends = meet(true);
  CHECK(ends.waits == "");
  CHECK(ends.computes == "");
  CHECK(ends.refusals > 0);
}

TEST_CASE("the same call ends well where memory is there") {
  const Ends ends = meet(false);
  CHECK(ends.waits == "nothing was thrownnothing was thrown");
  CHECK(ends.computes == "nothing was thrown");
  CHECK(ends.refusals == 0);
}

}  // namespace
}  // namespace paceline
