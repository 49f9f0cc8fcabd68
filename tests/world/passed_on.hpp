// A transport for tests that forwards all calls; a test overrides those that it needs.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "transport/transport.hpp"

namespace paceline::test {

class PassedOn : public Transport {
 public:
  explicit PassedOn(std::unique_ptr<Transport> below) : below_(std::move(below)) {}

  std::string_view name() const override { return below_->name(); }
  int rank() const override { return below_->rank(); }
  int ranks() const override { return below_->ranks(); }
  void listen(Listener* listener) override { below_->listen(listener); }
  void send(Transfer& transfer) override { below_->send(transfer); }
  void recv(Transfer& transfer) override { below_->recv(transfer); }
  void cancel(Transfer& transfer) override { below_->cancel(transfer); }
  bool progress() override { return below_->progress(); }
  void unexpected(const KeyRange& of, const Visit& visit) const override {
    below_->unexpected(of, visit);
  }
  void forget(std::uint64_t context) override { below_->forget(context); }
  void abort(int peer, std::uint64_t context, const std::string& why) override {
    below_->abort(peer, context, why);
  }
  void leave(Leaving why) override { below_->leave(why); }
  void check_peers() override { below_->check_peers(); }
  void ask(int peer) override { below_->ask(peer); }
  void rest(int timeout_us, const std::function<bool()>& can_progress) override {
    below_->rest(timeout_us, can_progress);
  }
  void wake() override { below_->wake(); }
  void publish_status(const PeerStatus& doing) override { below_->publish_status(doing); }
  PeerStatus peer_status(int peer) const override { return below_->peer_status(peer); }

 private:
  std::unique_ptr<Transport> below_;
};

}  // namespace paceline::test
