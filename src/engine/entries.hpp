// Entries: when the ranks of a node came to their last calls, and by that, whether the next goes by
// who comes when.
//
// A rank enters a call when all peers have left the call before the last one: so what they wrote
// there is known to it, and to all that enter. Each call that may go by arrival, whichever way it
// goes, is learned from at the first such call that comes at least two calls later, by all ranks
// from the same numbers. Four places are used in turn: whoever writes to one again has seen all
// peers leave the call in which they read it last.
//
// So ranks cannot decide differently, not even where their clocks differ: then they are all wrong
// about who is late, by the same numbers. Ranks that pass something else show another fingerprint,
// and so does a call that goes by arrival beside one that does not: they fail with a mismatch.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "arrival/arrival_switch.hpp"
#include "arrival/sequence.hpp"
#include "transport/transport.hpp"

namespace paceline {

class ShmChannel;

class EntryBook {
 public:
  // The first thing in a call that may go by arrival, once all peers have left the call before the
  // last one: learns, and says whether this one does. Calls are alike that pass the same and
  // have the same place in the sequence of such calls; with a tag, those of the same tag whose
  // counts have the same power of two.
  bool decide(ShmChannel& stages, std::uint64_t call, const Fingerprint& fingerprint);
  // This rank takes turns with others on a core.
  void take_turns() { takes_turns_ = true; }
  // Of the call that was decided last; seconds of a clock that all ranks share.
  void enter(ShmChannel& stages, double now_s);
  void leave(ShmChannel& stages, double now_s);

  // Of such a call, were it the next one; nothing: none was seen.
  std::optional<ArrivalSwitch::Evidence> evidence(const Fingerprint& fingerprint) const;

 private:
  static constexpr std::size_t kMostSites = 64;
  struct Site {
    std::uint64_t key;
    ArrivalSwitch decides;
  };
  struct Made {
    std::uint64_t call = 0;
    std::shared_ptr<Site> site;   // null: it has been learned from
    bool by_arrival = false;
  };

  std::uint64_t key_of(const Fingerprint& call) const;
  std::shared_ptr<Site> site_of(std::uint64_t key);
  void learn(ShmChannel& stages, std::uint64_t turn);

  mutable std::mutex mutex_;   // whoever explains a call may be another thread
  std::vector<std::uint64_t> entered_;   // in a call that is learned from
  bool takes_turns_ = false;
  std::uint64_t turns_ = 0;    // such calls so far
  std::array<Made, 4> made_;   // by turn
  CallSequence sequence_;
  std::list<std::shared_ptr<Site>> newest_first_;
};

}  // namespace paceline
