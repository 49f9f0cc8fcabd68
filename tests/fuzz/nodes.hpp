// Ranks of a node each, as fibers in model time, over links that take as long as the model says, or
// all of one node, or of several: for tests of who is expected to come late.
#pragma once

#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "bootstrap/open_world.hpp"
#include "fuzz/fibers.hpp"
#include "ir/layout.hpp"
#include "loop/loop.hpp"

namespace paceline::fuzz {

inline constexpr double kBetaS = 4e-8;             // per byte: 200 Mbit/s
inline constexpr const char* kMachine = "1e-5,4e-8,0";
inline constexpr std::size_t kCount = 32768;       // f32: worth notes for up to five ranks
inline constexpr double kMessageS = kBetaS * 4 * kCount;

struct Header {
  int from;
  Key key;
  Fingerprint fingerprint;
};

// The node of every rank, and how long the port of each is in use.
struct Ports {
  std::vector<int> node_of;
  std::vector<double> until_s;
};

// Every node sends one message at a time, each as long as its bytes take; inside it they take no
// time. Headers are there at once (`headers`, by receiver).
class SlowTransport : public Transport {
 public:
  SlowTransport(LoopNet& net, Fibers& fibers, std::vector<std::vector<Header>>& headers,
                Ports& ports, int rank, bool stages)
      : fibers_(fibers), headers_(headers), ports_(ports), below_(net.endpoint(rank)),
        stages_(stages) {}

  std::string_view name() const override { return "slow loop"; }
  int rank() const override { return below_->rank(); }
  int ranks() const override { return below_->ranks(); }
  void listen(Listener* listener) override { below_->listen(listener_ = listener); }
  StagingBuffers* stages() override { return stages_ ? below_->stages() : nullptr; }
  bool is_oversubscribed() const override { return true; }   // on any machine: all share one thread
  void send(Transfer& t) override {
    headers_[std::size_t(t.peer)].push_back({rank(), t.key, t.fingerprint});
    const int node = ports_.node_of[std::size_t(rank())];
    double sent_s = fibers_.now_s();
    if (node != ports_.node_of[std::size_t(t.peer)]) {
      double& until_s = ports_.until_s[std::size_t(node)];
      sent_s = until_s = std::max(until_s, sent_s) + kBetaS * double(t.bytes);
    }
    waiting_.push_back({&t, sent_s});
  }
  void recv(Transfer& t) override { below_->recv(t); }
  void cancel(Transfer& t) override {
    std::erase_if(waiting_, [&](const Waiting& w) { return w.transfer == &t; });
    below_->cancel(t);
  }
  bool progress() override {
    fibers_.yield(false);
    bool moved = false;
    for (const Header& header : std::exchange(headers_[std::size_t(rank())], {})) {
      early_.push_back(header);
      listener_->arrives(header.from, header.key, header.fingerprint);
    }
    if (early_.size() > kMostEarly)
      early_.erase(early_.begin(), early_.end() - std::ptrdiff_t(kMostEarly));
    for (auto next = waiting_.begin(); next != waiting_.end();) {
      const Waiting sent = *next;
      if (sent.until_s > fibers_.now_s()) {
        ++next;
        continue;
      }
      next = waiting_.erase(next);
      below_->send(*sent.transfer);
      moved = true;
    }
    return below_->progress() || moved;
  }
  void unexpected(const KeyRange& of, const Visit& visit) const override {
    for (const Header& header : early_)
      if (of.has(header.key)) visit(header.from, header.key, header.fingerprint);
    below_->unexpected(of, visit);
  }
  void abort(int peer, std::uint64_t context, const std::string& why) override {
    below_->abort(peer, context, why);
  }
  void leave(Leaving why) override { below_->leave(why); }
  void check_peers() override { below_->check_peers(); }
  void rest(int, const std::function<bool()>&) override { fibers_.sleep(1e-5); }
  void wake() override {}
  void publish_status(const PeerStatus& doing) override { below_->publish_status(doing); }
  PeerStatus peer_status(int peer) const override { return below_->peer_status(peer); }

 private:
  struct Waiting {
    Transfer* transfer;
    double until_s;
  };
  static constexpr std::size_t kMostEarly = 200;   // of the call under way, and the next ones

  Fibers& fibers_;
  std::vector<std::vector<Header>>& headers_;
  std::vector<Header> early_;
  Ports& ports_;
  std::unique_ptr<Transport> below_;
  bool stages_;
  Listener* listener_ = nullptr;
  std::list<Waiting> waiting_;
};

struct Nodes {
  LoopNet net;
  Fibers fibers;
  std::vector<std::vector<Header>> headers;
  std::vector<std::string> errors;
  std::vector<Fault> faults;
  Ports ports;
  std::size_t staging = 0;   // of ranks that share one of several nodes
  bool near;   // they share one

  using Body = std::function<void(Communicator&, int rank)>;

  Nodes(int ranks, std::uint64_t seed, bool are_near = false)
      : net(ranks, {.seed = seed, .delay_most = 0}), fibers(seed), headers(std::size_t(ranks)),
        errors(std::size_t(ranks)),
        faults(std::size_t(ranks), Fault::internal),
        near(are_near) {
    ports.node_of.resize(std::size_t(ranks));
    ports.until_s.resize(std::size_t(ranks));
    if (!near) std::iota(ports.node_of.begin(), ports.node_of.end(), 0);
  }
  Nodes(std::vector<int> node_of, std::uint64_t seed, std::size_t staging_bytes)
      : Nodes(static_cast<int>(node_of.size()), seed) {
    ports.node_of = std::move(node_of);
    staging = staging_bytes;
  }

  // Every rank does the same, by options of its own; whether they all come to an end.
  bool run(const std::function<void(WorldConfig&, int rank)>& options, const Body& body) {
    const auto ranks = static_cast<int>(errors.size());
    for (int r = 0; r < ranks; ++r)
      fibers.add([&, r] {
        WorldConfig config;
        config.progress = Progress::caller;
        config.timeout_ms = 20000;
        config.warn_ms = 0;
        config.machine = kMachine;
        if (!near) config.nodes = ports.node_of;
        config.node_staging = staging;
        options(config, r);
        Communicator world = join_transport(
            std::make_unique<SlowTransport>(net, fibers, headers, ports, r, near || staging > 0),
            config);
        try {
          body(world, r);
        } catch (const Error& error) {
          errors[std::size_t(r)] = error.what();
          faults[std::size_t(r)] = error.fault();
        }
        world.leave();
        fibers.leave();
      });
    return fibers.run(40000000);
  }
  std::string trouble() const {
    std::string all;
    for (const std::string& error : errors) all += error;
    return all;
  }
};

inline void learning(WorldConfig& config, int) { config.arrival = "auto"; }

// Different on every rank, and such that another order of the sums has other bits.
inline float value(int rank, std::size_t i) {
  return 1.0f / static_cast<float>(3 + rank) + 1e3f * static_cast<float>((i * 7 + 1) % 11);
}

inline std::vector<float> in_rank_order(int ranks, std::size_t count) {
  std::vector<float> sum(count);
  for (std::size_t i = 0; i < count; ++i) {
    sum[i] = value(0, i);
    for (int r = 1; r < ranks; ++r) sum[i] += value(r, i);
  }
  return sum;
}

// Each block from the rank after its own on, as round a ring.
inline std::vector<float> in_ring_order(int ranks, std::size_t count) {
  std::vector<float> sum(count);
  for (int block = 0; block < ranks; ++block) {
    const Piece piece = cut(count, ranks, block);
    for (std::size_t i = piece.offset; i < piece.offset + piece.count; ++i)
      for (int k = 1; k <= ranks; ++k) {
        const float one = value((block + k) % ranks, i);
        sum[i] = k == 1 ? one : sum[i] + one;
      }
  }
  return sum;
}

inline Call sum_of(std::vector<float>& buffer) {
  Call call{Collective::allreduce, Type::f32, Op::sum};
  call.input = call.output = buffer.data();
  call.count = buffer.size();
  return call;
}

inline bool says(const std::string& text, const std::string& words) {
  return text.find(words) != text.npos;
}

}  // namespace paceline::fuzz
