// The type `auto` of a KVStore: keys are combined in buckets, which are called in the order in
// which their values become ready; several calls are under way at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "store/store.hpp"

namespace paceline::store {

// A round is what is pushed until a key comes for the second time: one step of training. A key
// without a bucket has a call of its own; a round that had such keys ends with a plan, which gives
// all keys buckets. A bucket is called when all its keys have been pushed and those before it in
// the plan have been called. A key whose bucket stays incomplete at a pull or a wait has a call of
// its own in that round.
class Auto : public Store {
 public:
  struct Options {
    std::size_t outstanding;      // calls under way at a time, at most; at least 1
    std::function<void()> plan;   // calls set_plan(); collective, at the same push on all ranks
  };
  Auto(graph::Engine& engine, Communicator communicator, Op op, graph::Engine::Idle idle,
       Options options);

  struct Seen {
    std::size_t key;
    double ready_s;   // after the round in which it had no bucket began
  };
  // In the order of the pushes of this round, and then those that were not pushed in it.
  std::vector<Seen> seen() const;

  struct BucketSpec {
    std::vector<std::size_t> keys;
    std::byte* data;   // room for all, one after the other
    std::size_t pieces;   // calls that the bucket is cut into, of equal length; 0 is 1
    std::shared_ptr<void> keeps;   // the memory of `data`
  };
  // When nothing is under way: moves the keys' buffers into those of the buckets, on this thread.
  // `order`: the buckets as they are called, each as often as it has pieces.
  void set_plan(const std::vector<BucketSpec>& buckets, std::vector<std::size_t> order);

  void expect(const std::vector<std::size_t>& keys) override;
  // Ends the round, if something has been pushed in it; at the same push on all ranks.
  void begin_round();
  // Pushes all keys of a bucket, once in a round that begin_round() has begun. Their buffers hold
  // the values already, written after a wait for these keys. Throws an internal error for a bucket
  // that is not there.
  void push_bucket(std::size_t number);
  void flush() override;

 private:
  struct Bucket {
    std::string name;
    std::uint64_t digest = 0;   // of the keys in their order, which all ranks must have alike
    std::vector<std::size_t> keys;
    std::vector<graph::Variable> parts;    // the keys'
    std::vector<graph::Variable> pieces;   // none: it is called as one
    std::byte* data = nullptr;
    std::size_t count = 0;
    std::size_t pushed = 0, called = 0;    // keys, and pieces, of this round
    int priority = 0;         // 0 for what the next forward pass needs first, then -1, -2, ...
    int asked_priority = 0;   // the highest that its keys were pushed with in this round
    std::shared_ptr<void> keeps;
  };
  struct State {   // of a key
    int bucket = -1;        // -1: none
    bool in_round = false;  // has been pushed in it
    bool waits = false;     // pushed, and not called: for others of its bucket, or for its turn
    std::shared_ptr<std::atomic<double>> ready_s;   // as Seen::ready_s; null: never measured
  };

  void exchange(std::size_t key, Transfer& value, int priority) override;
  bool help(int milliseconds) override { return calls_.help(milliseconds); }
  int bucket_of(std::size_t key) const override;
  void pull_comes(const std::vector<std::size_t>& keys) override;
  bool is_held_back(std::size_t key) const override { return states_[key].waits; }
  void end_round();
  void rank_by_need();
  void note_pushed(std::size_t key);
  void note_when_ready(std::size_t key);
  void call_ready_buckets();
  int priority_of(const Bucket& bucket) const;
  void call_next_piece(Bucket& bucket);
  void make(const Call& call, graph::TaskSpec spec);

  const std::function<void()> plan_;   // Options::plan
  tasks::Calls calls_;
  // Call i writes number i modulo their count: so many are under way at most.
  std::vector<graph::Variable> outstanding_;
  std::size_t calls_made_ = 0;
  std::vector<State> states_;         // by key
  std::vector<std::size_t> round_;    // keys of this round, as they were pushed
  double round_began_s_ = 0;          // when the first of them was
  bool has_unbucketed_ = false;   // keys of this round that have no bucket
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> order_;   // as set_plan() was given it; empty: no plan yet
  std::size_t next_ = 0;             // the place in it of the bucket that is called next
};

}  // namespace paceline::store
