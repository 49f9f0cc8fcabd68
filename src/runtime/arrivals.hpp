// ArrivalBook: what a communicator has learned of when its ranks come, and whom each of its calls
// takes for late.
//
// Equal on all ranks, without a message: a rank measures a call and says what it found in the notes
// of the next one like it (engine/notes.hpp), from which all learn the same. Why nobody can learn
// it later than another is in docs/design/0042-predict.md. Calls are alike that pass the same, and
// have the same place in the sequence of calls, or the same tag.
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

// Of PACELINE_PREDICT: "off", "nodes", "auto", or "static:3,5".
struct Expected {
  bool learns = false;           // between nodes
  bool learns_in_node = false;
  std::vector<int> late = {};   // ranks of the world, the latest one last
};
Expected expected_by(std::string_view option);   // throws a usage error

class ArrivalBook {
 public:
  using Prices = std::function<CallPrices(const Call&)>;
  // Of a communicator with these ranks of the world; `beta_s_per_byte` of a message between them.
  ArrivalBook(const Expected& expected, const std::vector<int>& ranks, double beta_s_per_byte,
              Prices prices);

  using Turn = ArrivalTurn;   // a call that is about to be made

  bool is_on() const { return learns_ || !late_.empty(); }
  bool learns() const { return learns_; }
  void stop() {   // from now on nobody is taken for late
    learns_ = false;
    late_.clear();
  }
  ~ArrivalBook();

  // What could be learned from such a call is worth the notes in it.
  bool wants(const Call& call) const;
  // Such a call may come to take some ranks for late: those that it wants to learn of, and
  // reductions and broadcasts, which use what the last allreduce with notes had learned.
  bool expects(const Call& call) const { return is_on() && (wants(call) || follows(call)); }
  // Changes nothing: the call may yet be refused.
  Turn turn_of(const Call& call) const {
    return is_on() ? looked_up(call) : Turn{};
  }
  // It is being started as this one, whose notes, if it has any, are told what this rank has to
  // say. Its caller waits for it before it makes another one (`is_blocking`), or may not; then this
  // rank says that it will if it always has, as a program of training steps does, and keeps to it.
  void begin(const Turn& turn, const Call& call, const std::shared_ptr<ActiveOp>& active,
             bool is_blocking);
  void begin(const Call& call) {   // without messages
    if (is_on()) count(call);
  }
  // Waits for the call that is awaited, if any is, and learns from it. Before the next one is
  // begun: whoever was interrupted while it waited has said that it would.
  void settle() {
    if (awaited_) learn_from(awaited_);
  }
  // And for the one before that is like this one and was started without waiting, if this rank has
  // said that it would.
  void settle(const Call& call) {
    settle();
    if (is_on()) settle_alike(call);
  }
  // It is about to be started again: what is to be learned from it is learned now.
  void settle(const std::shared_ptr<ActiveOp>& active);

  // Who came late by how much, how often that was foreseen, and what is decided; for explain().
  std::string evidence(const Call& call) const;

 private:
  static constexpr std::size_t kMostSites = 64;
  static constexpr int kHabit = 3;
  static constexpr std::size_t kBytesPerWord = 4096;   // of a message, to be worth a word of notes

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
  std::vector<int> late_;   // asked for; positions
  int ranks_;
  double beta_s_per_byte_;
  Prices prices_;
  CallSequence sequence_;
  std::list<std::shared_ptr<ArrivalSite>> newest_first_;
  std::shared_ptr<ActiveOp> awaited_;
  // What the last call with notes had been told: for collectives that reach nobody but the root.
  std::vector<int> named_;
  std::int64_t named_gap_ns_ = 0;
};

}  // namespace paceline
