// MpiNet: ports of the mpi transport without an MPI, for one thread that steps all ranks.
//
// Messages take a random number of polls. A message is copied when its receive is there, as MPI may
// do, which reveals memory that is reused too early.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "transport/mpi/port.hpp"

namespace paceline::test {

struct MpiNet {
  enum class State { free, open, over, ended };
  struct Message {  // one end of it
    State state = State::free;
    bool receives = false;
    int peer = 0;
    int tag = 0;
    std::byte* to = nullptr;
    std::size_t room = 0;
    mpi::Ended how = {};
  };
  struct Sent {  // on its way, or unexpected at its receiver
    int from = 0;
    int message = 0;  // of the sender; -1: the sender is not told
    int tag = 0;
    const std::byte* data = nullptr;
    std::vector<std::byte> copy;
    std::size_t bytes = 0;
    int delay = 0;
    double sent_s = 0;
    bool withdrawn = false;  // given up early: the sender's memory has changed
  };
  struct Rank {
    std::vector<Message> messages;
    std::vector<int> posted;  // receives, in order
    std::vector<Sent> coming;
    bool freed = false;
    std::size_t calls = 0;
    std::size_t open() const {
      return std::size_t(std::count_if(messages.begin(), messages.end(), [](const Message& m) {
        return m.state == State::open || m.state == State::over;
      }));
    }
  };

  MpiNet(int p, std::uint64_t seed, int tags = 1000)
      : random(seed), tag_limit(tags), ranks(std::size_t(p)) {}
  std::unique_ptr<mpi::MpiPort> port(int rank);
  void step(int rank);  // moves what is due to that rank

  Random random;
  int tag_limit;
  double now_s = 1, tick_s = 1e-4;  // the time that a look at the clock takes
  std::function<void(int)> meanwhile;  // while this rank waits inside the transport
  std::function<void(int)> pass;       // the same, for ranks with threads of their own
  bool can_post_from_anybody = true;   // else receives from any rank never end
  int fails_to = -1;                   // sends to this rank go wrong
  std::size_t unread_most = 0;         // of copies that lay at one rank
  std::vector<Rank> ranks;
  std::vector<mpi::Buffer> kept;  // that MPI may still use
};

class FakePort : public mpi::MpiPort {
 public:
  FakePort(MpiNet& net, int rank) : net_(net), rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return int(net_.ranks.size()); }
  int tag_limit() const override { return net_.tag_limit; }
  double now_s() const override {
    if (const auto others = std::exchange(net_.meanwhile, nullptr)) {
      others(rank_);
      net_.meanwhile = others;
    }
    if (net_.pass) net_.pass(rank_);
    return net_.now_s += net_.tick_s;
  }
  std::string text_of(int error) const override { return str("fake error ", error); }
  bool is_finalized() const override { return false; }
  void free() override {
    require(me().coming.empty(), "a communicator is freed to which messages are on their way");
    me().freed = true;
  }

  int send(Mode mode, int peer, int tag, const std::byte* data, std::size_t bytes) override {
    require(!net_.ranks[std::size_t(peer)].freed, "a message to who has freed its communicator");
    const int message = add({.state = MpiNet::State::open, .peer = peer, .tag = tag});
    if (peer == net_.fails_to) {
      me().messages[std::size_t(message)].state = MpiNet::State::over;
      me().messages[std::size_t(message)].how = {.peer = peer, .error = 7};
      return message;
    }
    MpiNet::Sent sent{rank_, message, tag, data, {}, bytes, int(net_.random.below(4)),
                      net_.now_s};
    if (mode == Mode::buffered && net_.random.below(2)) {
      sent.copy.assign(data, data + bytes);
      sent.message = -1;
      me().messages[std::size_t(message)].state = MpiNet::State::over;
    }
    net_.ranks[std::size_t(peer)].coming.push_back(std::move(sent));
    return message;
  }

  int recv(int peer, int tag, std::byte* data, std::size_t bytes) override {
    const int message = add({MpiNet::State::open, true, peer, tag, data, bytes, {}});
    me().posted.push_back(message);
    return message;
  }

  bool can_post_from_anybody() const override { return net_.can_post_from_anybody; }

  // The oldest message of a sender that is due, by a receive that names it.
  int take(int tag, std::byte* data, std::size_t bytes) override {
    net_.step(rank_);
    std::vector<int> passed;
    for (const MpiNet::Sent& sent : me().coming) {
      if (sent.tag != tag || std::ranges::count(passed, sent.from)) continue;
      if (sent.delay <= 0) return recv(sent.from, tag, data, bytes);
      passed.push_back(sent.from);
    }
    return kNone;
  }

  void poll(const std::vector<int>& messages) override {
    ++me().calls;
    net_.step(rank_);
    for (int message : messages) {
      MpiNet::Message& m = me().messages[std::size_t(message)];
      if (m.state == MpiNet::State::over) m.state = MpiNet::State::ended;
    }
  }
  void wait(const std::vector<int>& messages) override { poll(messages); }

  bool ended(int message, mpi::Ended& how) override {
    MpiNet::Message& m = me().messages[std::size_t(message)];
    if (m.state != MpiNet::State::ended) return false;
    how = m.how;
    m.state = MpiNet::State::free;
    return true;
  }

  void cancel(int message) override {
    ++me().calls;
    MpiNet::Message& m = me().messages[std::size_t(message)];
    if (m.state != MpiNet::State::open) return;
    std::erase(me().posted, message);
    m.state = MpiNet::State::over;
    m.how.cancelled = true;
  }

  void abandon(int message, mpi::Buffer memory) override {
    const bool is_kept = memory != nullptr;
    net_.kept.push_back(std::move(memory));
    ++me().calls;
    MpiNet::Message& m = me().messages[std::size_t(message)];
    require(m.state == MpiNet::State::open || m.state == MpiNet::State::over ||
                m.state == MpiNet::State::ended,
            "a message is abandoned that is not under way");
    for (MpiNet::Rank& other : net_.ranks)  // MPI would read it where it is
      for (MpiNet::Sent& sent : other.coming)
        if (sent.from == rank_ && sent.message == message) {
          sent.copy.assign(sent.data, sent.data + sent.bytes);
          sent.message = -1;
          sent.withdrawn = !is_kept && net_.now_s - sent.sent_s < 5;  // longer: it says so
        }
    m.state = MpiNet::State::free;
  }

 private:
  MpiNet::Rank& me() const { return net_.ranks[std::size_t(rank_)]; }
  int add(MpiNet::Message m) {
    ++me().calls;
    auto& all = me().messages;
    auto at = std::find_if(all.begin(), all.end(), [](const MpiNet::Message& old) {
      return old.state == MpiNet::State::free;
    });
    if (at == all.end()) at = all.insert(all.end(), MpiNet::Message{});
    *at = m;
    return int(at - all.begin());
  }

  MpiNet& net_;
  int rank_;
};

inline std::unique_ptr<mpi::MpiPort> MpiNet::port(int rank) {
  return std::make_unique<FakePort>(*this, rank);
}

// The oldest message of a sender and tag goes to the oldest receive that takes it.
inline void MpiNet::step(int rank) {
  Rank& me = ranks[std::size_t(rank)];
  std::size_t unread = 0;
  std::vector<std::pair<int, int>> blocked;  // an older one of these is not due yet
  for (std::size_t i = 0; i < me.coming.size();) {
    Sent& sent = me.coming[i];
    const std::pair<int, int> line{sent.from, sent.tag};
    const bool waits = std::find(blocked.begin(), blocked.end(), line) != blocked.end();
    const auto receive = std::find_if(me.posted.begin(), me.posted.end(), [&](int posted) {
      const Message& m = me.messages[std::size_t(posted)];
      return m.tag == sent.tag && (m.peer == sent.from ||
                                   (m.peer == mpi::MpiPort::kAnybody && can_post_from_anybody));
    });
    if (waits || sent.delay-- > 0 || receive == me.posted.end()) {
      blocked.push_back(line);
      unread += sent.copy.size();
      ++i;
      continue;
    }
    Message& m = me.messages[std::size_t(*receive)];
    require(sent.bytes <= m.room, "a message is longer than its receive");
    require(!sent.withdrawn, "a caller's memory is read after it was given back");
    if (sent.bytes > 0)
      std::memcpy(m.to, sent.copy.empty() ? sent.data : sent.copy.data(), sent.bytes);
    m.how = {sent.from, sent.bytes};
    m.state = State::over;
    if (sent.message >= 0)
      ranks[std::size_t(sent.from)].messages[std::size_t(sent.message)].state = State::over;
    me.posted.erase(receive);
    me.coming.erase(me.coming.begin() + std::ptrdiff_t(i));
  }
  unread_most = std::max(unread_most, unread);
}

}  // namespace paceline::test
