#include "loop/loop.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "transport/matcher.hpp"

namespace paceline {

struct LoopNet::State {
  struct Message {
    Key key;
    Fingerprint fingerprint;
    Transfer* sender = nullptr;   // rendezvous
    std::vector<std::byte> data;  // buffered
    std::size_t bytes = 0;
    int delay = 0;
    bool seen = false;
  };
  struct Inbox {
    std::vector<Message> messages;  // from one peer
    std::vector<Transfer*> receives;
  };
  struct Notice {
    int from;
    std::uint64_t context;
    std::string why;
  };

  State(int size, LoopOptions asked)
      : ranks_(size),
        options_(std::move(asked)),
        random_(options_.seed),
        inbox_(std::size_t(size), std::vector<Inbox>(std::size_t(size))),
        notices_(std::size_t(size)),
        alive_(std::size_t(size), true),
        doing_(std::size_t(size)) {}

  void kill(int rank) {
    const std::lock_guard lock(mutex_);
    alive_[std::size_t(rank)] = false;
  }

  std::mutex mutex_;
  int ranks_;
  LoopOptions options_;
  Random random_;
  std::vector<std::vector<Inbox>> inbox_;  // by receiver, by sender
  std::vector<std::vector<Notice>> notices_;
  std::vector<bool> alive_;
  std::vector<PeerStatus> doing_;
  std::map<std::pair<int, std::uint64_t>, std::unique_ptr<StagingMemory>> stages_;
};

class LoopStaging : public StagingBuffers {
 public:
  LoopStaging(LoopNet::State& net, int rank) : net_(net), rank_(rank) {}

  std::size_t bytes() const override { return StagingMemory::kBytes; }
  StagingBuffer open(std::uint64_t context) override {
    const std::lock_guard lock(net_.mutex_);
    auto& memory = net_.stages_[{rank_, context}] = std::make_unique<StagingMemory>();
    const StagingBuffer stage{memory->bytes};
    stage.owner().reserved.store(~std::uint64_t{0}, std::memory_order_relaxed);   // all there is
    return stage;
  }
  void reserve(std::uint64_t, std::size_t) override {}
  std::optional<StagingBuffer> find(int peer, std::uint64_t context) override {
    const std::lock_guard lock(net_.mutex_);
    const auto found = net_.stages_.find({peer, context});
    if (found == net_.stages_.end()) return {};
    const StagingBuffer stage{found->second->bytes};
    stage.owner().holding[std::size_t(rank_)].store(AttachTable::holds, std::memory_order_release);
    return stage;
  }
  bool is_found(const StagingBuffer& own, int peer) const override {
    return own.owner().holding[std::size_t(peer)].load(std::memory_order_acquire) !=
           AttachTable::not_found;
  }
  void close(std::uint64_t) override {}   // it goes with the net: a peer may have it still

  const std::string& why_not_attached() const override { return net_.options_.why_not_attached; }
  const char* attached_by() const override { return "memory of one process"; }
  int copy(const PeerCopy& wanted) override {
    if (has_ended(wanted.peer)) return ESRCH;
    if (wanted.there == 0) return EFAULT;
    auto* there = reinterpret_cast<std::byte*>(wanted.there);
    if (wanted.writes) std::memcpy(there, wanted.here, wanted.bytes);
    else std::memcpy(wanted.here, there, wanted.bytes);
    return 0;
  }
  bool has_ended(int peer) const override {
    const std::lock_guard lock(net_.mutex_);
    return !net_.alive_[std::size_t(peer)];
  }

 private:
  LoopNet::State& net_;
  int rank_;
};

class LoopTransport : public Transport {
  using Message = LoopNet::State::Message;
  using Inbox = LoopNet::State::Inbox;
  using Notice = LoopNet::State::Notice;

 public:
  LoopTransport(std::shared_ptr<LoopNet::State> net, int rank)
      : held_(std::move(net)), net_(*held_), rank_(rank),
        told_lost_(std::size_t(net_.ranks_), false), stages_(net_, rank) {}

  std::string_view name() const override { return "loop"; }
  int rank() const override { return rank_; }
  int ranks() const override { return net_.ranks_; }
  void listen(Listener* listener) override { listener_ = listener; }
  StagingBuffers* stages() override { return &stages_; }

  void send(Transfer& t) override {
    const std::lock_guard lock(net_.mutex_);
    const int delay = static_cast<int>(
        net_.random_.below(static_cast<std::size_t>(net_.options_.delay_most) + 1));
    Message message{t.key, t.fingerprint, &t, {}, t.bytes, delay, false};
    if (t.key.signal || int(net_.random_.below(100)) < net_.options_.buffered_percent) {
      message.sender = nullptr;
      message.data.resize(t.bytes);
      copy_out(t.parts, 0, message.data.data(), t.bytes);
      t.done = true;
    }
    box(t.peer, rank_).messages.push_back(std::move(message));
  }

  void recv(Transfer& t) override {
    const std::lock_guard lock(net_.mutex_);
    box(rank_, t.peer).receives.push_back(&t);
  }

  void cancel(Transfer& t) override {
    const std::lock_guard lock(net_.mutex_);
    std::erase(box(rank_, t.peer).receives, &t);
    std::erase_if(box(t.peer, rank_).messages,
                  [&](const Message& m) { return m.sender == &t; });
  }

  bool progress() override {
    std::vector<Notice> notices;
    bool moved = false;
    {
      const std::lock_guard lock(net_.mutex_);
      notices.swap(net_.notices_[std::size_t(rank_)]);
    }
    for (const Notice& n : notices) listener_->aborted(n.from, n.context, n.why);
    for (int peer = 0; peer < net_.ranks_; ++peer) moved |= progress_from(peer);
    return moved || !notices.empty();
  }

  void unexpected(const KeyRange& of, const Visit& visit) const override {
    const std::lock_guard lock(net_.mutex_);
    for (int peer = 0; peer < net_.ranks_; ++peer)
      for (const Message& m : net_.inbox_[std::size_t(rank_)][std::size_t(peer)].messages)
        if (m.seen && of.has(m.key)) visit(peer, m.key, m.fingerprint);
  }

  void abort(int peer, std::uint64_t context, const std::string& why) override {
    const std::lock_guard lock(net_.mutex_);
    net_.notices_[std::size_t(peer)].push_back({rank_, context, why});
  }

  void leave(Leaving) override { net_.kill(rank_); }

  void check_peers() override {
    {
      const int awaited = listener_->awaits();
      const std::lock_guard lock(net_.mutex_);
      net_.doing_[std::size_t(rank_)].awaits = awaited;
    }
    for (int peer = 0; peer < net_.ranks_; ++peer) {
      {
        const std::lock_guard lock(net_.mutex_);
        if (net_.alive_[std::size_t(peer)] || told_lost_[std::size_t(peer)]) continue;
      }
      told_lost_[std::size_t(peer)] = true;
      listener_->lost(peer, "it was killed");
    }
  }

  void rest(int, const std::function<bool()>&) override { std::this_thread::yield(); }
  void wake() override {}

  void publish_status(const PeerStatus& doing) override {
    const std::lock_guard lock(net_.mutex_);
    net_.doing_[std::size_t(rank_)] = doing;
  }
  PeerStatus peer_status(int peer) const override {
    const std::lock_guard lock(net_.mutex_);
    return net_.doing_[std::size_t(peer)];
  }

 private:
  Inbox& box(int receiver, int sender) {
    return net_.inbox_[std::size_t(receiver)][std::size_t(sender)];
  }

  // Returns true if a message from this peer moved. The listener is called outside the lock: it may
  // abort, which locks.
  bool progress_from(int peer) {
    std::vector<std::pair<Key, Fingerprint>> fresh;
    {
      const std::lock_guard lock(net_.mutex_);
      for (Message& m : box(rank_, peer).messages)
        if (!std::exchange(m.seen, true)) fresh.emplace_back(m.key, m.fingerprint);
    }
    for (const auto& [key, fingerprint] : fresh)
      if (!listener_->arrives(peer, key, fingerprint)) drop(peer, key);
    const std::lock_guard lock(net_.mutex_);
    Inbox& inbox = box(rank_, peer);
    bool moved = !fresh.empty();
    for (std::size_t i = 0; i < inbox.messages.size();) {
      Message& m = inbox.messages[i];
      const auto receive = std::find_if(inbox.receives.begin(), inbox.receives.end(),
                                        [&](const Transfer* t) { return t->key == m.key; });
      if (!m.seen || receive == inbox.receives.end() || m.delay-- > 0) {
        ++i;
        continue;
      }
      if (m.bytes == (*receive)->bytes)
        finish(m, **receive);
      else
        listener_->misfits(peer, m.key, m.bytes, (*receive)->bytes);
      inbox.receives.erase(receive);
      inbox.messages.erase(inbox.messages.begin() + std::ptrdiff_t(i));
      moved = true;
    }
    return moved;
  }

  void drop(int peer, const Key& key) {
    const std::lock_guard lock(net_.mutex_);
    std::erase_if(box(rank_, peer).messages,
                  [&](const Message& m) { return m.key == key; });
  }

  // Hands the message over in small pieces, as a real transport would in larger ones.
  void finish(Message& m, Transfer& receive) {
    std::vector<std::byte> data = std::move(m.data);
    if (m.sender) {
      data.resize(m.bytes);
      copy_out(m.sender->parts, 0, data.data(), m.bytes);
    }
    const std::size_t piece = 64 * (1 + net_.random_.below(4));
    for (std::size_t at = 0; at < data.size(); at += piece)
      deliver(receive, data.data() + at, std::min(piece, data.size() - at));
    receive.done = true;
    if (m.sender) m.sender->done = true;
  }

  std::shared_ptr<LoopNet::State> held_;
  LoopNet::State& net_;
  int rank_;
  Listener* listener_ = nullptr;
  std::vector<bool> told_lost_;
  LoopStaging stages_;
};

LoopNet::LoopNet(int ranks, LoopOptions options)
    : state_(std::make_shared<State>(ranks, std::move(options))) {}

std::unique_ptr<Transport> LoopNet::endpoint(int rank) {
  return std::make_unique<LoopTransport>(state_, rank);
}

void LoopNet::kill(int rank) { state_->kill(rank); }

}  // namespace paceline
