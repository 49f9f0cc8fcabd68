// Peer: what the mpi transport keeps for each of the other ranks.
#pragma once

#include <algorithm>
#include <deque>
#include <string>

#include "transport/matcher.hpp"
#include "transport/mpi/wire.hpp"

namespace paceline::mpi {

// Bytes of eager messages that a peer may have unread before it is sent streams instead, which
// bounds what it keeps aside.
inline constexpr std::uint64_t kUnreadMost = 1u << 20;
inline constexpr double kAskAgainS = 1;   // between two questions what a peer is doing
inline constexpr double kAnswerS = 0.25;  // a peer that waits, too, answers in some milliseconds

struct Early {
  Fingerprint fingerprint;
  Header header;
  Buffer memory;  // of an eager message
  std::uint64_t place = 0;   // among all messages of its peer
};

struct Peer {
  Matcher<Early> matcher;
  std::uint64_t arrived = 0;      // messages so far: eager ones, and announced streams
  std::deque<Transfer*> waiting;  // for a tag
  std::uint64_t sent = 0;         // bytes of eager messages, headers included
  std::uint64_t known_read = 0;   // bytes of these that the peer has read, as it said last
  std::uint64_t read = 0;         // of the peer's: matched, or thrown away
  std::uint64_t told_read = 0;
  PeerStatus heard{0, {}, 0, false, false};
  double asked_s = -kAskAgainS;
  double unanswered_s = 0;   // time of the oldest open question; 0: none
  double left_s = 0;
  std::string gone;  // why nothing comes any more; empty: it is there
  bool told_gone = false;
  bool closed = false;   // it receives nothing any more
  bool is_over = false;  // its last word has come

  // Effect of announced streams without a receive on a stream that has one.
  enum class Before {
    nobody,    // there are none
    others,    // some, but none goes before it
    older,     // one goes before it, of the same or an earlier call of its communicator
    unknown    // one goes before it, of a call that this rank may begin later
  };
  Before before(const Order& stream) const {
    Before found = Before::nobody;
    for (const auto& [key, e] : matcher.early()) {
      if (e.header.kind != Kind::stream) continue;
      const Order other = order_of(e.header, e.place);
      const bool is_first = goes_before(other, stream);
      const bool is_begun = other.context == stream.context && is_older(other, stream);
      found = std::max(found, !is_first ? Before::others
                              : is_begun ? Before::older : Before::unknown);
    }
    return found;
  }
  PeerStatus is_at(double now_s) const {
    PeerStatus doing = heard;
    doing.silent = unanswered_s > 0 && now_s - unanswered_s > kAnswerS;
    doing.current = doing.current && !doing.silent;
    return doing;
  }
  // Takes what another rank, which waits for this peer, last heard of it, if this rank has heard
  // nothing.
  void is_awaited(const Awaited& said) {
    if (heard.number == 0)
      heard = {said.context, {said.what, said.count}, std::uint32_t(said.number), true, false};
  }
  Awaited as_awaited(int rank) const {
    return {rank, heard.context, heard.fingerprint.what, heard.fingerprint.count, heard.number};
  }
};

}  // namespace paceline::mpi
