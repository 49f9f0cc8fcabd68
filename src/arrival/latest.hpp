// Latest: the ranks that entered a call last, in the few words that its messages carry.
//
// A unit is a rank, or a node where ranks share nodes. Words of two ranks merge
// into those of both, in any order and any number of times, so that every rank that holds a sum of
// all ranks holds the same words (arrival/notes.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace paceline {

// One call's arrivals, as all ranks know them; nanoseconds.
struct Latest {
  struct Unit {
    int unit;
    std::int64_t waited_ns;   // from its last rank's entry until the last of all ranks entered
  };
  std::vector<Unit> units;    // the units that came last, the very last one first
  std::int64_t rest_ns = 0;   // from the last entry until the last rank was done
};

// Words of the ranks of a call about an earlier one.
class ArrivalWords {
 public:
  static constexpr int kUnits = 4;   // that are told: those that came last
  static constexpr std::size_t kWords = 1 + kUnits;
  static constexpr int kMostRanks = 0xffff;
  // Does a rank wait for this call before its next one? Merged: what all of them do.
  enum class Waits : std::uint8_t { no, before_alike, before_any };

  // The words of a rank that has nothing to say of an earlier call.
  explicit ArrivalWords(Waits waits = Waits::no);
  // The words of a rank of this unit: how long it waited in the earlier call, and the rest.
  ArrivalWords(Waits waits, int unit, std::int64_t waited_ns, std::int64_t rest_ns);

  void merge(const ArrivalWords& other);
  Waits waits() const;
  bool is_known() const;       // all ranks had something to say
  Latest latest() const;   // if is_known()

  std::uint32_t word(std::size_t at) const { return words_[at]; }
  void set_word(std::size_t at, std::uint32_t word) { words_[at] = word; }
  bool operator==(const ArrivalWords&) const = default;

 private:
  // The first word, from the highest bit: waits before any call; waits before a like call; 14 bits
  // for the rest; 16 bits that are the notes' (0). Then the units that waited least, in rising
  // order: 16 bits for how long, 16 for the unit.
  std::array<std::uint32_t, kWords> words_;
};

// Packs a time into 14 bits, to one part in 256; times over 18 minutes count as 18 minutes.
std::uint32_t packed(std::int64_t ns);
std::int64_t unpacked(std::uint32_t code);

}  // namespace paceline
