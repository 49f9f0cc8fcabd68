// ArrivalBook: learns when the ranks of a communicator come, and tells each call which ranks to
// take for late.
//
// All ranks learn the same without extra messages: a rank measures a call and puts the result into
// the notes of the next call like it (engine/notes.hpp). docs/design/0042-predict.md explains why
// no rank learns later than another. Calls are alike if they pass the same arguments and have the
// same place in the sequence of calls, or the same tag.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "arrival/predict.hpp"
#include "arrival/sequence.hpp"
#include "engine/notes.hpp"
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
  // `ranks`: the communicator's, as ranks of the world. `beta_s_per_byte`: of a message between
  // them.
  ArrivalBook(const Expected& expected, const std::vector<int>& ranks, double beta_s_per_byte,
              Prices prices);

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
  // Counts the call, which starts as `active`, and writes this rank's word into its notes, if it
  // has any. The word promises to wait for the call before the next one like it: always if
  // `is_blocking`, else if the program did so the last kHabit times. settle() keeps the promise.
  void begin(const Turn& turn, const Call& call, const std::shared_ptr<ActiveOp>& active,
             bool is_blocking);
  void begin(const Call& call) {   // for a call without messages
    if (is_on()) count(call);
  }
  // Waits for the last blocking call, and learns from it. Called before each call, since the wait
  // for the last one may have been interrupted.
  void settle() {
    if (awaited_) learn_from(awaited_);
  }
  // Settles also the last non-blocking call like this one, if this rank promised to wait for it.
  void settle(const Call& call) {
    settle();
    if (is_on()) settle_alike(call);
  }
  // Settles an operation that is about to be started again.
  void settle(const std::shared_ptr<ActiveOp>& active);

  // Text for explain(): how late ranks came, how often that was foreseen, and what is decided.
  std::string evidence(const Call& call) const;

 private:
  static constexpr std::size_t kMostSites = 64;
  static constexpr int kHabit = 3;
  static constexpr std::size_t kBytesPerWord = 4096;   // least message bytes per word of notes

  bool follows(const Call& call) const;
  bool is_long(const Call& call) const;
  std::uint64_t key_of(const Call& call) const;
  std::shared_ptr<ArrivalSite> find(std::uint64_t key) const;
  std::vector<int> late_for(const Call& rooted) const;
  void count(const Call& call);
  Turn looked_up(const Call& call) const;
  void settle_alike(const Call& call);
  void settle(ArrivalSite& site);
  void learn_from(std::shared_ptr<ActiveOp>& awaited);
  void learn(const ActiveOp& active);

  bool learns_;
  std::vector<int> late_;   // positions of the ranks that "static:" names
  int ranks_;
  double beta_s_per_byte_;
  Prices prices_;
  CallSequence sequence_;
  std::list<std::shared_ptr<ArrivalSite>> newest_first_;
  std::shared_ptr<ActiveOp> awaited_;
  // Late ranks of the last call with notes, and their gap, for calls without notes: follows().
  std::vector<int> named_;
  std::int64_t named_gap_ns_ = 0;
};

}  // namespace paceline
