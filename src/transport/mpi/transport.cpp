#include "transport/mpi/transport.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "transport/mpi/mpi_transport.hpp"

namespace paceline::mpi {
namespace {

// Bytes read after which a peer is told by a message of its own, unless another header did it.
constexpr std::uint64_t kTellRead = kUnreadMost / 4;
constexpr double kStragglersS = 1;   // how long chunks may still come from a peer that has left

}  // namespace

void MpiTransport::send(Transfer& t) {
  Peer& peer = peers_[std::size_t(t.peer)];
  poll_interval_.stir();
  if (left_ || !peer.gone.empty()) return;  // not done, until its peer is reported as lost
  if (t.bytes > config_.eager_bytes || peer.sent - peer.known_read > kUnreadMost)
    return announce_stream(t);
  Header header = header_of(Kind::eager, t);
  header.read = credit_to(peer);
  mail_.send(t.peer, header, t.bytes,
             [&](std::byte* target) { copy_out(t.parts, 0, target, t.bytes); });
  peer.sent += sizeof(Header) + t.bytes;
  t.done.store(true, std::memory_order_release);
}

void MpiTransport::announce_stream(Transfer& t) {
  Peer& peer = peers_[std::size_t(t.peer)];
  Header header = header_of(Kind::stream, t);
  header.chunks = streams_.chunks_of(t.bytes);
  header.tag = peer.waiting.empty() ? streams_.draw(t.peer) : 0;
  if (header.tag == 0) {
    peer.waiting.push_back(&t);
    waiting_for_tags_ = true;
    return;
  }
  post(t.peer, header);
  streams_.send(t, header.tag);
}

void MpiTransport::recv(Transfer& t) {
  if (left_) return;
  Peer& peer = peers_[std::size_t(t.peer)];
  Early early;
  if (!peer.matcher.post(t, early)) return;
  const Header& h = early.header;
  const bool fits = h.total == t.bytes;
  if (h.kind == Kind::stream) {
    take_stream(fits ? &t : nullptr, t.peer, h, early.place);
  } else {
    if (fits)
      deliver_eager(peer, t.peer, t, early.memory.get() + sizeof(Header));
    else
      count_read(peer, t.peer, h.total);
    mail_.give_back(std::move(early.memory));
  }
  if (!fits) listener_->misfits(t.peer, t.key, h.total, t.bytes);
}

// Receives a stream, or throws it away if there is no transfer. `place`: among all messages of that
// peer. A stream behind one that has no receive yet waits for that, and Streams::release() asks its
// sender to let it pass if it must; for a stream that is thrown away this function asks.
void MpiTransport::take_stream(Transfer* t, int from, const Header& h, std::uint64_t place) {
  const Order order = order_of(h, place);
  const Peer::Before before = peers_[std::size_t(from)].before(order);
  if (!t && before >= Peer::Before::older) want(from, h.tag);
  streams_.receive(t, from, h.tag, h.total, h.chunks, order, before == Peer::Before::older);
  streams_.look_again();
}

void MpiTransport::want(int from, std::uint32_t tag) {
  if (left_ || !peers_[std::size_t(from)].gone.empty()) return;
  Header header;
  header.kind = Kind::want;
  header.tag = tag;
  post(from, header);
}

void MpiTransport::cancel(Transfer& t) {
  if (left_) return;
  Peer& peer = peers_[std::size_t(t.peer)];
  peer.matcher.cancel(t);
  std::erase(peer.waiting, &t);
  const auto withdrawn = streams_.drop(t, may_read_s(peer));
  if (!withdrawn || !peer.gone.empty()) return;
  Header header = header_of(Kind::withdraw, t);
  header.tag = withdrawn->tag;
  header.chunks = withdrawn->chunks;
  post(t.peer, header);
}

void MpiTransport::poll(bool block) {
  polled_.clear();
  mail_.pending(polled_);
  streams_.pending(polled_);
  if (polled_.empty()) return;
  block ? port_->wait(polled_) : port_->poll(polled_);
}

bool MpiTransport::progress() {
  if (left_ || peers_.size() == 1) return false;
  poll(false);
  bool moved = false;
  Mailbox::Letter letter;
  int trouble = 0;
  while (mail_.next(letter, trouble)) moved |= take(letter);
  if (trouble)
    for (int p = 0; p < ranks(); ++p) mark_gone(p, port_->text_of(trouble));
  mail_.collect([&](int p, int code) { mark_gone(p, port_->text_of(code)); });
  moved |= streams_.progress();
  const auto before = [&](int p, const Order& order) {
    return peers_[std::size_t(p)].before(order);
  };
  for (const Streams::HeldUp& one : streams_.release(before)) want(one.peer, one.tag);
  if (waiting_for_tags_) try_tags();
  poll_interval_.look(moved);
  return moved;
}

void MpiTransport::try_tags() {
  waiting_for_tags_ = false;
  for (Peer& peer : peers_)
    for (Transfer* t : std::exchange(peer.waiting, {})) announce_stream(*t);
}

// Returns true if the letter was about a transfer.
bool MpiTransport::take(Mailbox::Letter& letter) {
  Peer& peer = peers_[std::size_t(letter.from)];
  peer.known_read = letter.header.read;
  peer.unanswered_s = 0;
  if (letter.header.kind == Kind::eager || letter.header.kind == Kind::stream) {
    arrive(letter);
    return true;
  }
  const bool moved = control(letter);
  mail_.give_back(std::move(letter.memory));
  return moved;
}

// Handles every letter but those that begin a message. Returns true if it was about a transfer.
bool MpiTransport::control(const Mailbox::Letter& letter) {
  Peer& peer = peers_[std::size_t(letter.from)];
  const Header& h = letter.header;
  switch (h.kind) {
    case Kind::withdraw:   // without a receive so far: what was sent of it is thrown away
      for (const auto& [key, e] : peer.matcher.early())
        if (e.header.kind == Kind::stream && e.header.tag == h.tag)
          streams_.receive(nullptr, letter.from, h.tag, h.total, h.chunks);
      peer.matcher.drop_early([&](const Key&, const Early& e) {
        return e.header.kind == Kind::stream && e.header.tag == h.tag;
      });
      streams_.withdraw(letter.from, h.tag, h.chunks);
      return true;
    case Kind::want:
      streams_.want(letter.from, h.tag);
      return true;
    case Kind::abort:
      listener_->aborted(letter.from, h.context,
                         std::string(reinterpret_cast<char*>(letter.payload()), letter.bytes));
      return true;
    case Kind::query: {
      Header answer = answer_of(status_);
      answer.read = credit_to(peer);
      const int awaited = listener_->awaits();
      Awaited said;
      if (awaited >= 0) said = peers_[std::size_t(awaited)].as_awaited(awaited);
      mail_.send(letter.from, answer, sizeof(said),
                 [&](std::byte* target) { std::memcpy(target, &said, sizeof(said)); });
      return false;
    }
    case Kind::answer:
      peer.heard = {h.context, fingerprint_of(h), h.number, h.signal != 0, true};
      if (const Awaited said = awaited_of(letter.payload(), letter.bytes);
          said.rank >= 0 && said.rank < ranks()) {
        peer.heard.awaits = static_cast<int>(said.rank);
        peers_[std::size_t(said.rank)].is_awaited(said);
      }
      return false;
    case Kind::leave:
      if (peer.gone.empty()) peer.gone = words_of(Leaving{h.signal});
      peer.left_s = port_->now_s();
      if (answers_goodbyes_) tell(letter.from, Kind::bye);
      return false;
    case Kind::close:
      peer.closed = true;
      [[fallthrough]];
    case Kind::bye:
      peer.is_over = true;
      return false;
    default:
      return false;
  }
}

void MpiTransport::arrive(Mailbox::Letter& letter) {
  const Header& h = letter.header;
  const int from = letter.from;
  Peer& peer = peers_[std::size_t(from)];
  const Key key = key_of(h);
  const bool is_stream = h.kind == Kind::stream;
  const std::uint64_t place = peer.arrived++;
  peer.heard = {h.context, fingerprint_of(h), h.number, true, false};
  // A message that does not fit its call is received and thrown away.
  const bool welcome = !left_ && listener_->arrives(from, key, fingerprint_of(h));
  if (welcome && !is_stream && letter.bytes != h.total) {   // it does not hold what it says
    count_read(peer, from, letter.bytes);
    listener_->misfits(from, key, letter.bytes, h.total);
    return mail_.give_back(std::move(letter.memory));
  }
  Transfer* t = welcome ? peer.matcher.take(key) : nullptr;
  if (welcome && !t) {
    peer.matcher.keep(key) = {fingerprint_of(h), h,
                              is_stream ? nullptr : std::move(letter.memory), place};
    if (is_stream) streams_.look_again();
    mail_.give_back(std::move(letter.memory));
    return;
  }
  const bool fits = t && t->bytes == h.total;
  if (is_stream)
    take_stream(fits ? t : nullptr, from, h, place);
  else if (fits)
    deliver_eager(peer, from, *t, letter.payload());
  else
    count_read(peer, from, h.total);
  mail_.give_back(std::move(letter.memory));
  if (t && !fits) listener_->misfits(from, key, h.total, t->bytes);
}

void MpiTransport::deliver_eager(Peer& peer, int from, Transfer& t, const std::byte* data) {
  deliver(t, data, t.bytes);
  count_read(peer, from, t.bytes);
  t.done.store(true, std::memory_order_release);
}

// Counts eager bytes that were read, so that the peer may send as many again (kUnreadMost).
void MpiTransport::count_read(Peer& peer, int from, std::size_t bytes) {
  peer.read += sizeof(Header) + bytes;
  if (peer.read - peer.told_read < kTellRead || !peer.gone.empty() || left_) return;
  tell(from, Kind::credit);
}

void MpiTransport::unexpected(const KeyRange& of, const Visit& visit) const {
  for (int p = 0; p < ranks(); ++p)
    peers_[std::size_t(p)].matcher.visit(
        of, [&](const Key& key, const Early& e) { visit(p, key, e.fingerprint); });
}

void MpiTransport::forget(std::uint64_t context) {
  if (left_) return;
  for (int p = 0; p < ranks(); ++p) {
    Peer& peer = peers_[std::size_t(p)];
    std::vector<std::pair<Header, std::uint64_t>> streams;
    peer.matcher.drop_early([&](const Key& key, Early& e) {
      if (key.context != context) return false;
      if (e.header.kind == Kind::stream) {
        streams.emplace_back(e.header, e.place);
      } else {
        count_read(peer, p, e.header.total);
        mail_.give_back(std::move(e.memory));
      }
      return true;
    });
    for (const auto& [header, place] : streams) take_stream(nullptr, p, header, place);
  }
}

void MpiTransport::abort(int to, std::uint64_t context, const std::string& why) {
  Peer& peer = peers_[std::size_t(to)];
  if (left_ || to == rank() || !peer.gone.empty()) return;
  Header header;
  header.kind = Kind::abort;
  header.context = context;
  header.read = credit_to(peer);
  const std::size_t bytes = std::min(why.size(), mail_.payload_most());
  mail_.send(to, header, bytes, [&](std::byte* target) { std::memcpy(target, why.data(), bytes); });
}

void MpiTransport::mark_gone(int p, const std::string& why) {
  Peer& peer = peers_[std::size_t(p)];
  if (p != rank() && peer.gone.empty()) peer.gone = str("MPI cannot reach it: ", why);
}

void MpiTransport::check_peers() {
  if (left_) return;
  for (int p = 0; p < ranks(); ++p) {
    Peer& peer = peers_[std::size_t(p)];
    if (p == rank() || peer.told_gone || peer.gone.empty()) continue;
    if (streams_.comes_from(p) && port_->now_s() - peer.left_s < kStragglersS) continue;
    peer.told_gone = true;
    listener_->lost(p, peer.gone);
  }
}

void MpiTransport::ask(int p) {
  Peer& peer = peers_[std::size_t(p)];
  const double now_s = port_->now_s();
  if (left_ || p == rank() || !peer.gone.empty() || now_s - peer.asked_s < kAskAgainS) return;
  peer.asked_s = now_s;
  if (peer.unanswered_s == 0) peer.unanswered_s = now_s;
  tell(p, Kind::query);
}

void MpiTransport::rest(int timeout_us, const std::function<bool()>&) {
  if (config_.blocking_sleep) return poll(true);
  const double now_s = port_->now_s();
  if (poll_interval_.missed()) sockets_.search(now_s);
  poll_interval_.woke(sockets_.rest(poll_interval_.next_us(now_s, timeout_us)));
}

void agree(Bootstrap& meeting, const MpiConfig& config) {
  const std::string mine =
      str("eager_bytes ", config.eager_bytes, ", chunk_bytes ", config.chunk_bytes);
  const std::vector<std::string> said = meeting.allgather(mine);
  for (std::size_t r = 0; r < said.size(); ++r)
    if (said[r] != mine)
      fail(Fault::mismatch, "mpi: the configuration differs between ranks (rank ", meeting.rank(),
           ": ", mine, "; rank ", r, ": ", said[r], "); all ranks must have the same.");
}

std::unique_ptr<Transport> make_transport(std::unique_ptr<MpiPort> port, const MpiConfig& config) {
  return std::make_unique<MpiTransport>(std::move(port), config);
}

}  // namespace paceline::mpi
