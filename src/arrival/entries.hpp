// Entries: times at which the ranks of a node entered their last calls, and the decision whether
// the next call goes by arrival.
//
// A rank enters a call when all peers have left the call before the last one, so it knows what they
// wrote there, as do all ranks that enter. All ranks learn from each call that may go by arrival,
// from the same numbers, at the first such call at least two calls later. Four places are used in
// turn: a rank that writes to one again has seen all peers leave the call in which they last read
// it.
//
// So all ranks decide alike, even if their clocks differ: they are then all wrong about the late
// ranks, by the same numbers. Ranks that pass different arguments show different fingerprints, and
// so do a call by arrival and a usual one: they fail with a mismatch.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "arrival/arrival_switch.hpp"
#include "arrival/sequence.hpp"
#include "transport/staging.hpp"

namespace paceline {

// The entries of the ranks of a node, in memory that they share. They have been found.
struct NodeEntries {
  int rank = 0, ranks = 1;
  std::function<StageEntries&(int rank)> at;
};

class EntryBook {
 public:
  // Begins a call that may go by arrival, once all peers have left the call before the last one:
  // learns, and returns true if this call goes by arrival. Calls are alike if they pass the same
  // arguments at the same place in the sequence of such calls; calls with a tag, if the tags and
  // the powers of two of the counts are equal.
  bool decide(const NodeEntries& node, std::uint64_t call, const Fingerprint& fingerprint);
  // True if this rank takes turns with others on a core.
  void set_takes_turns(bool takes_turns) { takes_turns_ = takes_turns; }
  // Record the times of the call decided last; seconds of a clock that all ranks share.
  void enter(const NodeEntries& node, double now_s);
  void leave(const NodeEntries& node, double now_s);

  // Returns the evidence for such a call as the next one; nothing if none was seen.
  std::optional<ArrivalSwitch::Evidence> evidence(const Fingerprint& fingerprint) const;

 private:
  static constexpr std::size_t kMostSites = 64;
  struct Site {
    std::uint64_t key;
    ArrivalSwitch decides;
  };
  struct Made {
    std::uint64_t call = 0;
    std::shared_ptr<Site> site;   // null: already learned from
    bool by_arrival = false;
  };

  std::uint64_t key_of(const Fingerprint& call) const;
  std::shared_ptr<Site> site_of(std::uint64_t key);
  void learn(const NodeEntries& node, std::uint64_t turn);

  mutable std::mutex mutex_;   // another thread may explain a call
  std::vector<std::uint64_t> entered_;   // in a call that is learned from
  bool takes_turns_ = false;
  std::uint64_t turns_ = 0;    // such calls so far
  std::array<Made, 4> made_;   // by turn
  CallSequence sequence_;
  std::list<std::shared_ptr<Site>> newest_first_;
};

}  // namespace paceline
