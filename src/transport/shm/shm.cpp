#include "transport/shm/shm.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <numeric>

#include "base/error.hpp"
#include "transport/shm/peer.hpp"
#include "transport/shm/staging.hpp"
#include "transport/shm/status.hpp"
#include "transport/shm/stopped.hpp"

namespace paceline {

using shm::copy_head;
using shm::Early;
using shm::head;
using shm::kNoToken;
using shm::Peer;

namespace {

// Bytes of small messages that a writer may have unread before it asks first: bounds what a slow
// reader keeps aside.
constexpr std::uint64_t kUnreadMost = 4u << 20;

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout, nullptr,
          0);
}

std::vector<int> everybody(int ranks) {
  std::vector<int> all(std::size_t(ranks), 0);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

class ShmTransport : public Transport {
 public:
  ShmTransport(Bootstrap& meeting, const ShmConfig& config)
      : rank_(meeting.rank()),
        ranks_(meeting.ranks()),
        boxes_(meeting, config),
        peers_(std::size_t(ranks_)),
        stopped_(ranks_, config.stopped_ms),
        names_(config.names) {
    if (names_.empty()) names_ = everybody(ranks_);
    at_.resize(std::size_t(*std::max_element(names_.begin(), names_.end())) + 1, -1);
    for (int p = 0; p < ranks_; ++p) at_[std::size_t(names_[std::size_t(p)])] = p;
    if (boxes_.provision().bytes > 0)
      stages_ = std::make_unique<ShmStaging>(boxes_, rank_, at_, config.dir);
    for (int p = 0; p < ranks_; ++p) {
      peers_[std::size_t(p)].out = boxes_.ring(p, rank_);
      peers_[std::size_t(p)].in = boxes_.ring(rank_, p);
    }
  }
  ~ShmTransport() override { ShmTransport::leave(Leaving::ended); }

  // The first reason stays.
  void leave(Leaving why) override {
    std::uint32_t nothing = 0;
    boxes_.header(rank_).left.compare_exchange_strong(nothing, static_cast<std::uint32_t>(why),
                                                      std::memory_order_release,
                                                      std::memory_order_relaxed);
    for (int p = 0; p < ranks_; ++p)
      if (p != rank_) wake_peers(p);
  }

  std::string_view name() const override { return "shm"; }
  int rank() const override { return names_[std::size_t(rank_)]; }
  int ranks() const override { return ranks_; }
  bool is_oversubscribed() const override { return boxes_.is_oversubscribed(); }
  void listen(Listener* listener) override { listener_ = listener; }
  StagingBuffers* stages() override { return stages_.get(); }

  void send(Transfer& t) override {
    const int p = at(t.peer);
    Peer& peer = peers_[std::size_t(p)];
    peer.enqueue(&t);
    push(p, peer);
  }

  void recv(Transfer& t) override {
    const int p = at(t.peer);
    Peer& peer = peers_[std::size_t(p)];
    if (!peer.matcher.post(t, taken_)) return;
    if (taken_.total != t.bytes) return listener_->misfits(t.peer, t.key, taken_.total, t.bytes);
    if (taken_.request) return grant(p, peer, t, taken_.token);
    deliver(t, taken_.data.data(), taken_.data.size());
    drain(p, peer, taken_.data.size());
    t.done.store(true, std::memory_order_release);
  }

  void cancel(Transfer& t) override {
    Peer& peer = peers_[std::size_t(at(t.peer))];
    std::erase(peer.sends, &t);
    peer.matcher.cancel(t);
    peer.requested.retire(&t);
    peer.granted.retire(&t);
  }

  bool is_quiet() override {
    const Peer* const own = &peers_[std::size_t(rank_)];
    for (Peer& peer : peers_)   // without a division, which none_of() would begin with
      if (&peer != own && peer.has_work()) return false;
    return true;
  }

  bool progress() override {
    bool moved = false;
    for (int p = 0; p < ranks_; ++p) {
      if (p == rank_) continue;
      Peer& peer = peers_[std::size_t(p)];
      moved |= pull(p, peer);
      if (!peer.sends.empty() || !peer.words.empty()) moved |= push(p, peer);
    }
    return moved;
  }

  void unexpected(const KeyRange& of, const Visit& visit) const override {
    for (int p = 0; p < ranks_; ++p)
      peers_[std::size_t(p)].matcher.visit(of, [&](const Key& key, const Early& e) {
        visit(names_[std::size_t(p)], key, e.fingerprint);
      });
  }

  void forget(std::uint64_t context) override {
    for (int p = 0; p < ranks_; ++p) {
      Peer& peer = peers_[std::size_t(p)];
      peer.matcher.drop_early([&](const Key& key, const Early& e) {
        const bool goes = key.context == context;
        if (goes && !e.request) drain(p, peer, e.data.size());
        return goes;
      });
    }
  }

  void abort(int to, std::uint64_t context, const std::string& why) override {
    const int p = at(to);
    Peer& peer = peers_[std::size_t(p)];
    if (p == rank_ || peer.gone) return;
    peer.say(context, why);
    push(p, peer);
  }

  bool owes() const override {
    return std::ranges::any_of(peers_, [](const Peer& p) { return !p.gone && !p.words.empty(); });
  }

  void check_peers() override {
    shm::publish_awaited(boxes_.header(rank_), listener_->awaits());
    const bool is_due = stopped_.is_due(Stopped::Clock::now());
    for (int p = 0; p < ranks_; ++p) {
      Peer& peer = peers_[std::size_t(p)];
      if (p == rank_ || peer.gone) continue;
      const std::uint32_t left = boxes_.header(p).left.load(std::memory_order_acquire);
      if (left == 0 && !boxes_.has_died(p)) {
        if (is_due && stopped_.outlasts(p, boxes_.process_id(p))) give_up(p);
        continue;
      }
      peer.gone = true;
      listener_->lost(names_[std::size_t(p)],
                      left == 0 ? "its process has died" : words_of(static_cast<Leaving>(left)));
    }
  }

  void wake_peers(const std::vector<int>& ranks) override {
    order_before_looking();
    for (int rank : ranks)
      if (const int p = at(rank); p != rank_) futex_wake(p);
  }

  void rest(int timeout_us, const std::function<bool()>& can_progress) override {
    std::atomic<std::uint32_t>& asleep = boxes_.header(rank_).asleep;
    asleep.store(1, std::memory_order_relaxed);
    order_before_sleeping();
    for (Peer& peer : peers_)
      if (&peer != &peers_[std::size_t(rank_)] && peer.in.filled_cell())
        return asleep.store(0, std::memory_order_relaxed);
    if (can_progress && can_progress()) return asleep.store(0, std::memory_order_relaxed);
    const timespec timeout{timeout_us / 1000000, timeout_us % 1000000 * 1000L};
    futex(asleep, FUTEX_WAIT, 1, &timeout);
    asleep.store(0, std::memory_order_relaxed);
  }

  void wake() override { wake_peers(rank_); }

  void publish_status(const PeerStatus& doing) override {
    shm::publish_status(boxes_.header(rank_), doing);
  }
  PeerStatus peer_status(int peer) const override {
    return shm::status_in(boxes_.header(at(peer)));
  }

 private:
  int at(int name) const { return at_[std::size_t(name)]; }

  // The peer can still be written to, so that it learns of the loss if it goes on.
  void give_up(int p) {
    listener_->lost(names_[std::size_t(p)], stopped_.why(p, boxes_.process_id(p)));
  }

  void wake_peers(int p) {
    order_before_looking();
    futex_wake(p);
  }

  // Two ranks race: one stores and then looks for sleepers, the other is about to sleep and looks
  // for stores. These fences make sure that one of them sees the other.
  void order_before_looking() const {
    if (boxes_.is_light()) std::atomic_signal_fence(std::memory_order_seq_cst);
    else std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  void order_before_sleeping() const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (boxes_.is_light()) syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
  }

  void futex_wake(int p) {
    std::atomic<std::uint32_t>& asleep = boxes_.header(p).asleep;
    if (asleep.load(std::memory_order_relaxed) == 0) return;
    asleep.store(0, std::memory_order_relaxed);
    futex(asleep, FUTEX_WAKE, INT_MAX, nullptr);
  }

  // Writes what is due to one peer, as far as its ring has room.
  bool push(int p, Peer& peer) {
    bool moved = false;
    for (Cell64* cell = nullptr; !peer.words.empty() && (cell = peer.out.free_cell()) != nullptr;
         moved = true) {
      const shm::Word& word = peer.words.front();
      copy_head(*cell, word.head);
      std::memcpy(Ring::payload(cell), word.text.data(), word.text.size());
      peer.words.pop_front();
      peer.out.publish();
    }
    for (std::size_t i = 0; i < peer.sends.size();) {
      Transfer& t = *peer.sends[i];
      Cell64* cell = peer.out.free_cell();
      if (!cell) break;
      if (!push_one(p, peer, t, *cell)) {
        ++i;
        continue;
      }
      moved = true;
      if (t.done.load(std::memory_order_relaxed) || (!t.granted && t.token != kNoToken))
        peer.sends.erase(peer.sends.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (moved) wake_peers(p);
    return moved;
  }

  // Fills one cell for this send; false if nothing of it is due.
  bool push_one(int p, Peer& peer, Transfer& t, Cell64& cell) {
    if (t.granted) {
      head(cell, CellKind::data, t);
      cell.token = t.token;
      cell.bytes = static_cast<std::uint32_t>(std::min(t.bytes - t.moved, peer.out.cell_bytes()));
      copy_out(t.parts, t.moved, Ring::payload(&cell), cell.bytes);
      t.moved += cell.bytes;
      peer.out.publish();
      if (t.moved == t.bytes) t.done.store(true, std::memory_order_release);
      return true;
    }
    t.token = kNoToken;
    if (t.bytes <= peer.out.cell_bytes() && may_send_at_once(p, peer)) {
      head(cell, CellKind::eager, t);
      cell.bytes = static_cast<std::uint32_t>(t.bytes);
      copy_out(t.parts, 0, Ring::payload(&cell), t.bytes);
      peer.unread += t.bytes + sizeof(Cell64);
      t.done.store(true, std::memory_order_release);
    } else {
      head(cell, CellKind::request, t);
      cell.token = t.token = peer.requested.add(&t);
    }
    peer.out.publish();
    return true;
  }

  // The line of drained() moves between two caches whenever it is read after a change.
  bool may_send_at_once(int p, Peer& peer) const {
    if (peer.unread - peer.known_drained > kUnreadMost)
      peer.known_drained = boxes_.drained(p, rank_).bytes.load(std::memory_order_relaxed);
    return peer.unread - peer.known_drained <= kUnreadMost;
  }

  // Takes what one peer has written.
  bool pull(int p, Peer& peer) {
    bool moved = false;
    while (Cell64* cell = peer.in.filled_cell()) {
      take(p, peer, *cell);
      peer.in.release();
      moved = true;
    }
    return moved;
  }

  void take(int p, Peer& peer, Cell64& cell) {
    const std::size_t bytes = std::min<std::size_t>(cell.bytes, peer.in.cell_bytes());
    switch (cell.kind) {
      case CellKind::eager:
      case CellKind::request:
        return arrive(p, peer, cell, bytes);
      case CellKind::grant:
        if (Transfer* t = peer.requested.find(cell.number)) {
          peer.requested.drop(cell.number);
          t->granted = true;
          t->token = cell.token;
          peer.enqueue(t);
        }
        return;
      case CellKind::data:
        if (Transfer* t = peer.granted.find(cell.token)) {
          if (bytes > t->bytes - t->moved)
            return listener_->misfits(names_[std::size_t(p)], t->key, t->moved + bytes, t->bytes);
          deliver(*t, Ring::payload(&cell), bytes);
          if (t->moved < t->bytes) return;
          peer.granted.drop(cell.token);
          t->done.store(true, std::memory_order_release);
        }
        return;
      case CellKind::abort:
        if (peer.hears(cell, bytes))
          listener_->aborted(names_[std::size_t(p)], cell.context, std::exchange(peer.heard, {}));
        return;
    }
  }

  void arrive(int p, Peer& peer, Cell64& cell, std::size_t bytes) {
    const Key key{cell.context, cell.number, cell.lane, cell.signal != 0, cell.seq};
    const Fingerprint fingerprint{cell.what, cell.count};
    const bool request = cell.kind == CellKind::request;
    const int from = names_[std::size_t(p)];
    const bool welcome = listener_->arrives(from, key, fingerprint);
    const std::uint64_t total = cell.total;
    if (welcome && !request && bytes != total) {   // it does not hold what it says
      drain(p, peer, bytes);
      return listener_->misfits(from, key, bytes, total);
    }
    Transfer* t = welcome ? peer.matcher.take(key) : nullptr;
    if (t && t->bytes != total) return listener_->misfits(from, key, total, t->bytes);
    if (t) {
      if (request) return grant(p, peer, *t, cell.token);
      deliver(*t, Ring::payload(&cell), bytes);
      drain(p, peer, bytes);
      t->done.store(true, std::memory_order_release);
      return;
    }
    if (!welcome) {
      if (!request) drain(p, peer, bytes);
      return;
    }
    Early& early = peer.matcher.keep(key);
    early.fingerprint = fingerprint;
    early.request = request;
    early.total = total;
    early.token = cell.token;
    early.data.assign(Ring::payload(&cell), Ring::payload(&cell) + (request ? 0 : bytes));
  }

  void drain(int p, Peer& peer, std::size_t bytes) {
    peer.drained += bytes + sizeof(Cell64);
    boxes_.drained(rank_, p).bytes.store(peer.drained, std::memory_order_relaxed);
  }

  void grant(int p, Peer& peer, Transfer& t, std::uint32_t sender) {
    Cell64& answer = peer.words.emplace_back().head;
    head(answer, CellKind::grant, t);
    answer.number = sender;  // the send that it answers
    answer.token = peer.granted.add(&t);
    push(p, peer);
  }

  int rank_;
  int ranks_;
  Inboxes boxes_;
  std::vector<Peer> peers_;
  Stopped stopped_;
  std::vector<int> names_;   // numbers of the ranks in the world
  std::vector<int> at_;      // the other way round; -1: not here
  std::unique_ptr<ShmStaging> stages_;   // null: there is no room for any
  Listener* listener_ = nullptr;
  Early taken_;   // the early message that was matched last
};

std::unique_ptr<Transport> make_shm(Bootstrap& meeting, const ShmConfig& config) {
  return std::make_unique<ShmTransport>(meeting, config);
}

}  // namespace paceline
