#include "transport/route/route.hpp"

#include <algorithm>

namespace paceline {
namespace {

// Longest time for which a message from another node may lie unseen while nothing else happens.
constexpr int kFarNapUs = 50;

class Route : public Transport {
 public:
  Route(std::unique_ptr<Transport> near, const std::vector<int>& neighbours,
        std::unique_ptr<Transport> far)
      : is_near_(std::size_t(far->ranks()), false),
        near_(std::move(near)),
        far_(std::move(far)) {
    for (int rank : neighbours) {
      is_near_[std::size_t(rank)] = true;
      is_alone_ &= rank == far_->rank();
    }
  }

  std::string_view name() const override { return "route"; }
  int rank() const override { return far_->rank(); }
  int ranks() const override { return far_->ranks(); }
  bool is_oversubscribed() const override { return near_->is_oversubscribed(); }
  StagingBuffers* stages() override { return near_->stages(); }
  void listen(Listener* listener) override {
    near_->listen(listener);
    far_->listen(listener);
  }

  void send(Transfer& t) override { to(t.peer).send(t); }
  void recv(Transfer& t) override { to(t.peer).recv(t); }
  void cancel(Transfer& t) override { to(t.peer).cancel(t); }
  bool is_quiet() override { return near_->is_quiet(); }
  void expect_rate(double bytes_per_s) override { far_->expect_rate(bytes_per_s); }
  bool progress() override {
    const bool moved = near_->progress();
    return far_->progress() || moved;
  }

  void unexpected(const KeyRange& of, const Visit& visit) const override {
    near_->unexpected(of, visit);
    far_->unexpected(of, visit);
  }
  void forget(std::uint64_t context) override {
    near_->forget(context);
    far_->forget(context);
  }
  void abort(int peer, std::uint64_t context, const std::string& why) override {
    to(peer).abort(peer, context, why);
  }
  bool owes() const override { return near_->owes() || far_->owes(); }
  void leave(Leaving why) override {
    near_->leave(why);
    far_->leave(why);
  }
  void check_peers() override {
    near_->check_peers();
    far_->check_peers();
  }
  void ask(int peer) override { to(peer).ask(peer); }
  void rest(int timeout_us, const std::function<bool()>& can_progress) override {
    if (is_alone_) return far_->rest(timeout_us, can_progress);
    near_->rest(std::min(timeout_us, kFarNapUs), can_progress);
  }
  void wake_peers(const std::vector<int>& ranks) override { near_->wake_peers(ranks); }
  void wake() override { near_->wake(); }
  void publish_status(const PeerStatus& doing) override {
    near_->publish_status(doing);
    far_->publish_status(doing);
  }
  PeerStatus peer_status(int peer) const override { return to(peer).peer_status(peer); }

 private:
  Transport& to(int peer) const { return is_near_[std::size_t(peer)] ? *near_ : *far_; }

  std::vector<bool> is_near_;   // by rank
  bool is_alone_ = true;        // on its node
  std::unique_ptr<Transport> near_, far_;
};

}  // namespace

std::unique_ptr<Transport> make_route(std::unique_ptr<Transport> near,
                                      const std::vector<int>& neighbours,
                                      std::unique_ptr<Transport> far) {
  return std::make_unique<Route>(std::move(near), neighbours, std::move(far));
}

}  // namespace paceline
