#include "fuzz/loop.hpp"

#include <algorithm>
#include <limits>
#include <list>
#include <utility>

#include "base/random.hpp"
#include "bootstrap/open_world.hpp"
#include "fuzz/fibers.hpp"
#include "loop/loop.hpp"

namespace paceline::fuzz {
namespace {

constexpr long kMostTurns = 20000000;

struct Net {
  LoopNet loop;
  Fibers fibers;
  Faults faults;
  Random random;
  int messages = 0;   // with data, so far
  double begun_s = 0;
  std::vector<std::atomic<int>> entered;   // by call

  Net(const Program& program, const Faults& f)
      : loop(program.ranks, {.seed = f.seed, .buffered_percent = int(f.seed % 3) * 50}),
        fibers(f.seed),
        faults(f),
        random(draw(f.seed, 0x6e6574)),
        entered(program.calls.size()) {}
  bool is_gone(int rank) const {
    return faults.killed && rank == faults.held &&
           fibers.now_s() >= begun_s + faults.held_from_s;
  }
};

// Holds back what is sent, lets other ranks run wherever it is called, and otherwise passes on.
class FaultyTransport : public Transport {
 public:
  FaultyTransport(Net& net, int rank) : net_(net), below_(net.loop.endpoint(rank)) {}

  std::string_view name() const override { return "faulty loop"; }
  int rank() const override { return below_->rank(); }
  int ranks() const override { return below_->ranks(); }
  void listen(Listener* listener) override { below_->listen(listener_ = listener); }
  StagingBuffers* stages() override { return net_.faults.stages ? below_->stages() : nullptr; }

  void send(Transfer& transfer) override {
    const double takes_s = delay();
    if (takes_s > 0) held_back_.push_back({&transfer, net_.fibers.now_s() + takes_s});
    else pass_on(transfer);
  }
  void recv(Transfer& transfer) override { below_->recv(transfer); }
  void cancel(Transfer& transfer) override {
    std::erase_if(held_back_, [&](const HeldBack& h) { return h.transfer == &transfer; });
    std::erase_if(turned_, [&](Turned& t) {
      if (t.of != &transfer) return false;
      below_->cancel(t.transfer);
      return true;
    });
    below_->cancel(transfer);
  }

  bool progress() override {
    net_.fibers.yield(moved_);
    moved_ = false;
    for (std::size_t i = 0; i < held_back_.size();) {
      if (held_back_[i].until_s > net_.fibers.now_s()) {
        ++i;
        continue;
      }
      pass_on(*held_back_[i].transfer);
      held_back_.erase(held_back_.begin() + std::ptrdiff_t(i));
      moved_ = true;
    }
    for (Turned& t : turned_)
      if (t.transfer.done && t.of) std::exchange(t.of, nullptr)->done = true;
    moved_ |= below_->progress();
    return moved_;
  }
  void unexpected(const KeyRange& of, const Visit& visit) const override {
    below_->unexpected(of, visit);
  }
  void abort(int peer, std::uint64_t context, const std::string& why) override {
    below_->abort(peer, context, why);
  }
  void leave(Leaving why) override { below_->leave(why); }
  void check_peers() override {
    if (net_.is_gone(net_.faults.held)) net_.loop.kill(net_.faults.held);
    below_->check_peers();
    for (int peer = 0; net_.fibers.is_ending() && peer < ranks(); ++peer)
      if (peer != rank()) listener_->lost(peer, "everybody has");
  }
  void rest(int timeout_us, const std::function<bool()>& can_progress) override {
    if (can_progress()) return net_.fibers.yield(true);
    net_.fibers.sleep(1e-6 * double(1 + net_.random.below(std::size_t(timeout_us))));
  }
  void wake_peers(const std::vector<int>& ranks) override {
    below_->wake_peers(ranks);
    net_.fibers.yield(true);
  }
  void wake() override { below_->wake(); }
  void publish_status(const PeerStatus& doing) override { below_->publish_status(doing); }
  PeerStatus peer_status(int peer) const override { return below_->peer_status(peer); }

 private:
  struct HeldBack {
    Transfer* transfer;
    double until_s;
  };
  struct Turned {   // a message with a wrong bit, sent instead of another
    Transfer transfer;
    std::vector<std::byte> data;
    Transfer* of = nullptr;
  };

  double delay() {
    const Faults& f = net_.faults;
    if (f.delay_s == 0 || net_.random.below(4) == 0) return 0;
    const double part = double(net_.random.below(1000)) * 1e-3;
    const bool is_late = int(net_.random.below(100)) < f.late_percent;
    return f.delay_s * part * (is_late ? 100 : 1);
  }

  void pass_on(Transfer& transfer) {
    const bool has_data = transfer.bytes > 0 && !transfer.key.signal;
    if (!has_data || net_.messages++ != net_.faults.wrong_message) return below_->send(transfer);
    Turned& turned = turned_.emplace_back();
    turned.data.resize(transfer.bytes);
    copy_out(transfer.parts, 0, turned.data.data(), transfer.bytes);
    turned.data[net_.random.below(transfer.bytes)] ^= std::byte{1};
    turned.transfer.peer = transfer.peer;
    turned.transfer.key = transfer.key;
    turned.transfer.fingerprint = transfer.fingerprint;
    turned.transfer.parts = {{turned.data.data(), transfer.bytes}};
    turned.transfer.bytes = transfer.bytes;
    turned.of = &transfer;
    below_->send(turned.transfer);
  }

  Net& net_;
  std::unique_ptr<Transport> below_;
  Listener* listener_ = nullptr;
  std::vector<HeldBack> held_back_;
  std::list<Turned> turned_;
  bool moved_ = false;   // since others ran
};

// One rank, from joining to leaving.
void run_rank(Net& net, const Program& program, int rank, LoopEnding& ending) {
  WorldConfig config;
  config.progress = Progress::caller;
  config.timeout_ms = int(1e3 * net.faults.timeout_s);
  config.warn_ms = 0;
  config.numbers = program.numbers;
  config.nodes = program.nodes;
  if (!program.nodes.empty() && net.faults.stages) config.node_staging = StagingMemory::kBytes;
  Communicator world = join_transport(std::make_unique<FaultyTransport>(net, rank), config);
  Seat seat{.world = std::move(world),
            .pause = [&](int us) { net.fibers.sleep(1e-6 * us); },
            .near = net.faults.stages && program.nodes.empty(),
            .compares = net.faults.wrong_message < 0,
            .entered = net.entered.data()};
  try {
    ending.ranks[std::size_t(rank)] = play(program, seat);
  } catch (...) {   // it is unwound: what is under way would keep its session
    seat.world.leave();
    throw;
  }
  ending.waited_s[std::size_t(rank)] = net.fibers.now_s() - net.begun_s;
  net.fibers.leave();
}

}  // namespace

Faults weather(std::uint64_t seed) {
  Random random(draw(seed, 0x77656174));
  Faults f;
  f.seed = draw(seed, 1);
  const double delays_s[] = {0, 3e-6, 5e-5, 2e-3};
  f.delay_s = delays_s[random.below(4)];
  f.late_percent = random.below(2) ? int(random.below(10)) : 0;
  f.stages = random.below(2);
  return f;
}

std::string LoopEnding::trouble() const {
  for (const Ending& e : ranks)
    if (!e.flaw.empty()) return e.flaw;
  for (const Ending& e : ranks)
    if (!e.error.empty()) return e.error;
  return ends ? "" : "does not end";
}

LoopEnding play_loop(const Program& program, const Faults& faults) {
  Net net(program, faults);
  LoopEnding ending;
  ending.ranks.resize(std::size_t(program.ranks));
  ending.waited_s.assign(ending.ranks.size(), std::numeric_limits<double>::infinity());
  const double begun_s = net.begun_s = net.fibers.now_s();
  for (int r = 0; r < program.ranks; ++r)
    net.fibers.add([&, r] { run_rank(net, program, r, ending); });
  if (faults.held >= 0)
    net.fibers.hold(faults.held, begun_s + faults.held_from_s,
                    begun_s + faults.held_from_s + faults.held_for_s);
  ending.ends = net.fibers.run(kMostTurns);
  ending.hit = faults.wrong_message >= 0 && net.messages > faults.wrong_message;
  ending.seconds = net.fibers.now_s() - begun_s;
  return ending;
}

Program loop_program(std::uint64_t seed, int ranks) {
  const int usual[] = {2, 3, 4, 2, 5, 3, 8, 1, 6, 7};
  return generate(seed, {.ranks = ranks > 0 ? ranks : usual[draw(seed, 3) % 10],
                         .numbers = draw(seed, 4) % 3 ? Numbers::stable : Numbers::fast,
                         .most_elements = 5000});
}

}  // namespace paceline::fuzz
