// A call with its data, and what must come out: the same for every transport. Values are unique per
// (rank, index), and sums of them are exact in every type that the case is run with.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/call.hpp"

namespace paceline::test {

struct Case {
  Collective collective = Collective::allreduce;
  std::string algorithm;
  int ranks = 1;
  std::size_t count = 1;  // of a unit
  int root = 0;
  bool in_place = false;
  bool uneven = false;
  int segments = 0;
  int window = 0;
  Op op = Op::sum;
  Knobs knobs = {};

  std::string name() const;
};

// Element `i` of what rank `from` has for rank `to` (0 where the collective does not tell ranks
// apart).
inline double value(int from, int to, std::size_t i) {
  return static_cast<double>(
      (static_cast<std::size_t>(from) * 1009 + static_cast<std::size_t>(to) * 101 + i * 7) % 4093 +
      1);
}

// Elements of the unit between two ranks, or of unit `a` where the collective has one per rank.
inline std::size_t unit_count(const Case& c, int a, int b = 0) {
  if (!c.uneven) return c.count;
  return (c.count * static_cast<std::size_t>(1 + (a + 2 * b) % 3)) /
         2;  // some of them empty for count 1
}

// T: float, double or std::int32_t.
template <class T>
class Buffers {
 public:
  Buffers(const Case& c, int rank);

  // The memory that the call may touch: where it is, and how many bytes.
  std::vector<std::pair<void*, std::size_t>> memory();

  Call call();

  // Returns what is wrong with the result; empty: nothing.
  std::string check() const;

 private:
  const T* result() const { return result_in_input_ ? input_.data() + result_at_ : output_.data(); }
  int p() const { return case_.ranks; }

  void append(std::vector<T>& to, int from, int target, std::size_t n) const;
  T combined(int target, std::size_t i) const;
  void counts(Call& out) const;
  std::size_t offset_of_own() const;
  void fill();
  void fill_moves();

  Case case_;
  int rank_;
  std::vector<T> input_, before_, output_, wanted_;
  T* alias_in_ = nullptr;
  T* alias_out_ = nullptr;
  bool result_in_input_ = false;
  std::size_t result_at_ = 0;
};

}  // namespace paceline::test
