// ArrivalBook: learns when the ranks of a communicator come, and tells each call which ranks to
// take for late.
//
// All ranks learn the same without extra messages: a rank measures a call and puts the result into
// the notes of a later one (arrival/notes.hpp). docs/design/0042-predict.md explains why no rank
// learns later than another.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "arrival/predict.hpp"
#include "arrival/sequence.hpp"
#include "runtime/arrival_turn.hpp"
#include "runtime/call.hpp"

namespace paceline {

struct ActiveOp;   // runtime/progress/session_state.hpp

// Value of PACELINE_PREDICT: "off", "nodes", "auto", or "static:3,5".
struct Expected {
  bool learns = false;           // between nodes
  bool learns_in_node = false;
  std::vector<int> late = {};   // ranks of the world, the latest one last
};
Expected expected_by(std::string_view option);   // throws a usage error

class ArrivalBook {
 public:
  using Prices = std::function<CallPrices(const Call&)>;
  // `ranks`: the communicator's, as ranks of the world. `nodes`: the node of each, if ranks share
  // nodes. `beta_s_per_byte`: of a message between them. Prices name late ranks by their positions.
  ArrivalBook(const Expected& expected, const std::vector<int>& ranks, int rank,
              const std::vector<int>& nodes, double beta_s_per_byte, Prices prices);

  using Turn = ArrivalTurn;

  bool is_on() const { return learns_ || !late_.empty(); }
  bool learns() const { return learns_; }
  void stop() {   // later calls take no rank for late
    learns_ = false;
    late_.clear();
  }
  ~ArrivalBook();

  // True if such a call teaches enough to be worth its notes.
  bool wants(const Call& call) const;
  // True if such a call may take ranks for late: calls that wants() accepts, and reductions and
  // broadcasts, which use what the last allreduce with notes has learned.
  bool expects(const Call& call) const { return is_on() && (wants(call) || follows(call)); }
  // Looks up the call's turn. Changes nothing, since the call may yet be refused.
  Turn turn_of(const Call& call) const {
    return is_on() ? looked_up(call) : Turn{};
  }
  // Counts the call, which starts as `active`, and sets this rank's words in its notes, if it has
  // any. They promise to wait for the call before the next one if `is_blocking`. Else they promise
  // what the program did the last kHabit times: to wait before the next one, or before the next one
  // at this place. settle() keeps the promise.
  void begin(Turn turn, const Call& call, const std::shared_ptr<ActiveOp>& active,
             bool is_blocking);
  void begin(const Call& call) {   // for a call without messages
    if (is_on()) count(call);
  }
  // Waits for the last blocking call, and learns from it. Called before each call, since the wait
  // for the last one may have been interrupted.
  void settle() {
    if (awaited_) learn_from(awaited_);
  }
  // Settles also the last call, and the last one at this one's place, as far as this rank promised
  // to wait for them, and learns what all ranks know of them.
  void settle(const Call& call) {
    settle();
    if (is_on()) settle_place(call);
  }
  // Settles an operation that is about to be started again.
  void settle(const std::shared_ptr<ActiveOp>& active);

  // Text for explain(): which ranks came last, how often, and what is decided.
  std::string evidence(const Call& call) const;

 private:
  static constexpr std::size_t kMostSites = 256;
  static constexpr int kHabit = 2;
  static constexpr std::size_t kShare = 1024;   // least message bytes per byte of notes

  bool follows(const Call& call) const;
  bool is_long(const Call& call) const;
  std::uint64_t key_of(const Call& call) const;
  std::shared_ptr<ArrivalSite> find(std::uint64_t key) const;
  std::shared_ptr<ArrivalSite> made(std::uint64_t key, const Call& call) const;
  std::vector<int> ranks_of(const std::vector<int>& units) const;
  std::vector<int> late_for(const Call& rooted) const;
  void count(const Call& call);
  Turn looked_up(const Call& call) const;
  void keep(const std::shared_ptr<ArrivalSite>& site);
  ArrivalWords::Waits promise_of(const ArrivalSite& site, const Call& call) const;
  void settle_place(const Call& call);
  void settle_newest();
  void settle(ArrivalSite& site);
  void learn_from(std::shared_ptr<ActiveOp>& awaited);
  void learn(const ActiveOp& active);
  void take(const ToldCall& told, const Latest& latest);

  bool learns_;
  std::vector<int> late_;   // positions of the ranks that "static:" names
  int ranks_, rank_;
  std::vector<int> unit_of_;   // by position: its node if ranks share nodes, else itself
  bool are_nodes_;
  double beta_s_per_byte_;
  Prices prices_;
  CallSequence sequence_;
  Predictor predictor_;
  std::list<std::shared_ptr<ArrivalSite>> newest_first_;
  std::shared_ptr<ActiveOp> awaited_;
  std::shared_ptr<ArrivalSite> newest_;   // of the last call with notes, if that was non-blocking
  int awaited_anywhere_ = 0;   // such calls in a row that were awaited before the next; <= kHabit
  ToldCall last_;   // the last call with notes, if all ranks waited for it
  // Late ranks of the last call with notes, and their gap, for calls without notes: follows().
  std::vector<int> named_;
  std::int64_t named_gap_ns_ = 0;
};

}  // namespace paceline
