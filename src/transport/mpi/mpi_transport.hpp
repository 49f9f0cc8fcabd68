// MpiTransport: messages over any MPI. Short ones are eager: they travel with their header, as
// control messages do (mailbox.hpp). Long ones are announced by their header, and follow as chunks
// (streams.hpp). Its messages are in transport.cpp, its end is in leaving.cpp.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "transport/mpi/mailbox.hpp"
#include "transport/mpi/poll_interval.hpp"
#include "transport/mpi/peer.hpp"
#include "transport/mpi/sockets.hpp"
#include "transport/mpi/streams.hpp"
#include "transport/mpi/transport.hpp"

namespace paceline::mpi {

inline constexpr std::size_t kTextMost = 1024;  // of an abort

class MpiTransport : public Transport {
 public:
  MpiTransport(std::unique_ptr<MpiPort> port, const MpiConfig& config)
      : config_(config),
        port_(std::move(port)),
        mail_(*port_, std::max(config.eager_bytes, kTextMost)),
        streams_(*port_, whole_lines(config.chunk_bytes),
                 [this](int peer, const std::string& why) { mark_gone(peer, why); }),
        peers_(std::size_t(port_->ranks())) {}
  ~MpiTransport() override { MpiTransport::leave(Leaving::ended); }

  std::string_view name() const override { return "mpi"; }
  int rank() const override { return port_->rank(); }
  int ranks() const override { return port_->ranks(); }
  bool is_oversubscribed() const override { return false; }  // not known: route asks its neighbours
  void listen(Listener* listener) override { listener_ = listener; }

  void send(Transfer& t) override;
  void recv(Transfer& t) override;
  void cancel(Transfer& t) override;
  bool progress() override;
  bool is_quiet() override { return true; }   // it shares no memory
  void expect_rate(double bytes_per_s) override { streams_.expect_rate(bytes_per_s); }
  void forget(std::uint64_t context) override;
  void unexpected(const KeyRange& of, const Visit& visit) const override;
  void abort(int to, std::uint64_t context, const std::string& why) override;
  void leave(Leaving why) override;
  void check_peers() override;
  void ask(int peer) override;
  void rest(int timeout_us, const std::function<bool()>& can_progress) override;
  void wake() override {}  // rest() sleeps 1 ms at most (PollInterval)
  void publish_status(const PeerStatus& doing) override { status_ = doing; }
  PeerStatus peer_status(int p) const override { return peers_[std::size_t(p)].is_at(
      port_->now_s()); }

 private:
  void post(int to, Header header) {
    header.read = credit_to(peers_[std::size_t(to)]);
    mail_.send(to, header);
  }
  void tell(int to, Kind kind) {
    Header header;
    header.kind = kind;
    post(to, header);
  }
  // Returns the bytes read from that peer, for the header of a message to it.
  std::uint64_t credit_to(Peer& peer) { return peer.told_read = peer.read; }
  void mark_gone(int p, const std::string& why);
  void announce_stream(Transfer& t);
  void take_stream(Transfer* t, int from, const Header& h, std::uint64_t place);
  void want(int from, std::uint32_t tag);
  void try_tags();
  void poll(bool block);
  bool take(Mailbox::Letter& letter);
  bool control(const Mailbox::Letter& letter);
  void arrive(Mailbox::Letter& letter);
  void deliver_eager(Peer& peer, int from, Transfer& t, const std::byte* data);
  void count_read(Peer& peer, int from, std::size_t bytes);
  double may_read_s(const Peer& peer) const;
  void wait_for_others(double most_s);
  bool is_over() const;

  MpiConfig config_;
  std::unique_ptr<MpiPort> port_;
  Mailbox mail_;
  Streams streams_;
  PollInterval poll_interval_;
  Sockets sockets_;
  std::vector<Peer> peers_;
  std::vector<int> polled_;  // messages of poll(), kept for its memory
  Listener* listener_ = nullptr;
  PeerStatus status_;   // of this rank, for peers that ask
  bool waiting_for_tags_ = false;   // some Peer::waiting is not empty
  bool left_ = false;
  bool answers_goodbyes_ = false;  // every peer has been told that this rank leaves
};

}  // namespace paceline::mpi
