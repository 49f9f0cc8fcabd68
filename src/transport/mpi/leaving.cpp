// Leaving: each rank tells every other one that it leaves and, once it has heard the same from that
// peer, sends it a last word. After the last words of all peers nothing can come any more, and the
// communicator may be freed: a message to a freed one would reach the next one with its number.
#include <algorithm>
#include <utility>

#include "transport/mpi/mpi_transport.hpp"

namespace paceline::mpi {
namespace {

constexpr double kLookS = 0.001;   // for what has already come
constexpr double kGoodbyeS = 1;    // for all peers to leave

}  // namespace

// Seconds for which a peer may still read from a message that is given up here. A peer that has
// left goes on receiving for a while.
double MpiTransport::may_read_s(const Peer& peer) const {
  if (peer.gone.empty()) return Streams::kLetGoS;
  if (peer.left_s == 0) return 0;  // MPI cannot reach it
  return std::max(0.0, peer.left_s + Streams::kLetGoS - port_->now_s());
}

// True if this rank has no message under way, and no peer will send one.
bool MpiTransport::is_over() const {
  const auto is_over = [&](const Peer& peer) {
    return &peer == &peers_[std::size_t(rank())] || peer.is_over;
  };
  return mail_.idle() && streams_.idle() && std::ranges::all_of(peers_, is_over);
}

// Calls MPI for the last time, so that it can be finalised. Waits a moment for messages to go out
// and for peers, since the communicator can be freed only once no rank uses it.
void MpiTransport::leave(Leaving why) {
  if (std::exchange(left_, true) || port_->is_finalized()) return;
  wait_for_others(kLookS);  // a peer that has closed must not be written to
  Header goodbye;
  goodbye.kind = Kind::leave;
  goodbye.signal = static_cast<std::uint8_t>(why);
  for (int p = 0; p < ranks(); ++p) {
    const Peer& peer = peers_[std::size_t(p)];
    if (p != rank() && !peer.closed) post(p, goodbye);
    if (peer.left_s > 0 && !peer.closed) tell(p, Kind::bye);
    for (const auto& [key, e] : peer.matcher.early())
      if (e.header.kind == Kind::stream)  // its sender waits until it is received
        streams_.receive(nullptr, p, e.header.tag, e.header.total, e.header.chunks);
  }
  answers_goodbyes_ = true;
  wait_for_others(kGoodbyeS);
  for (int p = 0; p < ranks(); ++p)
    if (p != rank() && peers_[std::size_t(p)].left_s == 0) tell(p, Kind::close);
  const bool may_free = is_over();
  mail_.close();
  streams_.close();
  const auto clean = [&] { return mail_.is_closed() && mail_.idle() && streams_.idle(); };
  const double give_up_s = port_->now_s() + kGoodbyeS;
  while (!clean() && port_->now_s() < give_up_s) {
    poll(false);
    mail_.collect_closed();
    mail_.collect([](int, int) {});
    streams_.progress();
  }
  const bool free = may_free && clean();
  mail_.abandon();
  streams_.abandon();
  if (free) port_->free();
}

// Waits until is_over(), at most `most_s` seconds.
void MpiTransport::wait_for_others(double most_s) {
  const double give_up_s = port_->now_s() + most_s;
  while (!is_over() && port_->now_s() < give_up_s) {
    poll(false);
    Mailbox::Letter letter;
    int trouble = 0;
    while (mail_.next(letter, trouble)) {
      const Kind kind = letter.header.kind;
      if (kind == Kind::abort || kind == Kind::query)
        mail_.give_back(std::move(letter.memory));
      else
        take(letter);
    }
    mail_.collect([](int, int) {});
    streams_.progress();
  }
}

}  // namespace paceline::mpi
