// Contract: which contributions every block must hold at the end, given what it holds at the start.
//
// The only definition of "correct". Algorithms are checked against it, never against each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/schedule.hpp"

namespace paceline {

// A set of ranks. A proof copies very many; those of up to 64 ranks take no memory of their own.
class RankSet {
 public:
  explicit RankSet(int ranks = 0)
      : more_(ranks > 64 ? (static_cast<std::size_t>(ranks) - 1) / 64 : 0) {}
  static RankSet all(int ranks);
  static RankSet one(int ranks, int rank);

  bool has(int rank) const { return word(static_cast<std::size_t>(rank) / 64) >> (rank % 64) & 1; }
  void add(int rank) {
    word(static_cast<std::size_t>(rank) / 64) |= std::uint64_t{1} << (rank % 64);
  }
  bool meets(const RankSet& other) const;
  int lowest() const;    // -1: empty
  int highest() const;
  std::string key() const;   // equal exactly for equal sets of as many ranks
  RankSet& operator|=(const RankSet& other);
  bool operator==(const RankSet&) const = default;

 private:
  std::size_t words() const { return more_.size() + 1; }
  const std::uint64_t& word(std::size_t i) const { return i == 0 ? first_ : more_[i - 1]; }
  std::uint64_t& word(std::size_t i) { return i == 0 ? first_ : more_[i - 1]; }

  std::uint64_t first_ = 0;
  std::vector<std::uint64_t> more_;
};

// Content of a block: piece `id` of the collective's data, summed over these ranks. `finished` is
// set once the sum has been declared complete. If the problem is canonical, `how` says in which
// order and by which steps: "2" is rank 2's own, "((0 1) 2)" was added by two steps.
struct Value {
  std::int64_t id = 0;
  RankSet from;
  bool finished = false;
  std::string how = {};
  bool operator==(const Value&) const = default;
};

// Content that the block of this rank's buffer has before and must have after; nothing if the
// collective does not define it. If a problem is in place, input and output are asked for under the
// name of the one that the steps use (home()).
std::optional<Value> before(const Schedule& schedule, Space space, int block);
std::optional<Value> after(const Schedule& schedule, Space space, int block);

// The buffer that `space` means for this problem: in place both names are one memory.
Space home(const Problem& problem, Space space);

// Two messages have equal length for every count exactly if their blocks have equal size names.
std::int64_t size_name(const Schedule& schedule, const Segment& segment, int block);

}  // namespace paceline
