// Sums that reveal their order: numbers that round, cancel, overflow and are subnormal, and the
// bits of their sum in rank order, by a reference that shares no line with the library.
#pragma once

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/algorithm.hpp"
#include "unit/kernels_reference.hpp"
#include "world/collective_case.hpp"

namespace paceline::test {

inline constexpr int kMostRanksOfSums = 18;
inline constexpr std::size_t kMostOfSums = 700;   // elements of a unit, then they repeat
inline constexpr Type kFloats[] = {Type::f64, Type::f32, Type::f16, Type::bf16};
inline constexpr Op kInexact[] = {Op::sum, Op::product, Op::average};

// Every third one cancels, or overflows on the way, in most orders but not in all.
inline std::uint64_t awkward(Type type, int rank, std::size_t i, numbers::Random& random) {
  const std::uint64_t width = 8 * size_of(type), mask = ~std::uint64_t{0} >> (64 - width);
  const std::uint64_t drawn = numbers::draw(type, random) & mask;
  if (i % 3 != 0) return drawn;
  const double most = std::ldexp(1.0, numbers::format_of(type).bias());
  const double size = i % 2 ? most : std::ldexp(1.0, 9);
  const int turn = (rank + static_cast<int>(i / 3)) % 4;
  return turn == 3 ? drawn : numbers::encode(type, turn == 0 ? size : turn == 1 ? -size : size / 8);
}

// Returns element i of a rank for a unit, the same in every run.
inline std::uint64_t number_of(Type type, int rank, int unit, std::size_t i) {
  static std::map<Type, std::vector<std::uint64_t>> all;
  std::vector<std::uint64_t>& numbers = all[type];
  if (numbers.empty()) {
    numbers::Random random(20 + static_cast<std::uint64_t>(type));
    for (int at = 0; at < kMostRanksOfSums * kMostRanksOfSums; ++at)
      for (std::size_t k = 0; k < kMostOfSums; ++k)
        numbers.push_back(awkward(type, at % kMostRanksOfSums, k, random));
  }
  return numbers[static_cast<std::size_t>(unit * kMostRanksOfSums + rank) * kMostOfSums +
                 i % kMostOfSums];
}

inline std::uint64_t divided(Type type, std::uint64_t sum, int by) {
  if (by == 1) return sum;
  return numbers::quotient(type, sum, by);
}

// In rank order, in float32 for 16-bit floats, rounded once; an average is divided, and rounded.
inline std::uint64_t canonical_bits(const Case& c, Type type, int unit, std::size_t i) {
  std::vector<std::uint64_t> values;
  for (int rank = 0; rank < c.ranks; ++rank) values.push_back(number_of(type, rank, unit, i));
  if (c.op != Op::average) return numbers::reference(type, c.op, values);
  return divided(type, numbers::reference(type, Op::sum, values), c.ranks);
}

// One rank's part of a case that sums. use() places `input` and `output` in the caller's memory.
class SumBuffers {
 public:
  SumBuffers(const Case& c, Type type, int rank) : case_(c), type_(type), rank_(rank) {
    const bool scatter = c.collective == Collective::reduce_scatter;
    for (int unit = 0; unit < (scatter ? c.ranks : 1); ++unit) {
      if (unit == rank) own_at_ = in_.size();
      for (std::size_t i = 0; i < unit_count(c, unit); ++i) append(in_, bits(unit, i));
    }
    result_unit_ = scatter ? rank : 0;
    has_result_ = c.collective != Collective::reduce || rank == c.root;
    if (has_result_) out_.assign(results() * size_of(type), 0x5a);
    before_ = in_;
    use(in_.data(), out_.data());
  }

  std::size_t bytes() const { return in_.size(); }
  // Moves to other memory, which has room for bytes() each.
  void use(unsigned char* input, unsigned char* output) {
    input_ = input;
    output_ = has_result_ ? output : nullptr;
    if (case_.in_place && has_result_) {
      if (case_.collective == Collective::reduce_scatter) output_ = input + own_at_;
      else input_ = output;
    }
    std::copy(before_.begin(), before_.end(), input_);
    if (!case_.in_place) std::copy(out_.begin(), out_.end(), output);
  }
  SumBuffers(const SumBuffers&) = delete;

  Call call() const {
    Call call;
    call.collective = case_.collective;
    call.type = type_;
    call.op = case_.op;
    call.root = case_.root;
    call.count = case_.count;
    call.uneven = case_.uneven;
    for (int r = 0; case_.uneven && r < case_.ranks; ++r)
      call.counts.push_back(unit_count(case_, r));
    call.algorithm = case_.algorithm;
    call.cut.segments = case_.segments;
    call.cut.window = case_.window;
    call.cut.knobs = case_.knobs;
    call.input = input_;
    call.output = output_;
    return call;
  }

  std::string check() const {
    for (std::size_t i = 0; i < results(); ++i) {
      const std::uint64_t want = canonical_bits(case_, type_, result_unit_, i);
      std::uint64_t got = 0;
      std::memcpy(&got, output_ + i * size_of(type_), size_of(type_));
      if (got != want)
        return str(case_.name(), " of ", name_of(type_), ": rank ", rank_, " element ", i, " is ",
                   numbers::decode(type_, got), " (bits ", got, "), in rank order ",
                   numbers::decode(type_, want), " (bits ", want, ")");
    }
    if (!case_.in_place && !std::equal(before_.begin(), before_.end(), input_))
      return str(case_.name(), ": rank ", rank_, " finds its input changed");
    return {};
  }

  std::string result() const {
    return {reinterpret_cast<const char*>(output_), results() * size_of(type_)};
  }

 private:
  std::size_t results() const { return has_result_ ? unit_count(case_, result_unit_) : 0; }
  std::uint64_t bits(int unit, std::size_t i) const { return number_of(type_, rank_, unit, i); }
  void append(std::vector<unsigned char>& to, std::uint64_t bits) const {
    const auto* first = reinterpret_cast<const unsigned char*>(&bits);
    to.insert(to.end(), first, first + size_of(type_));
  }

  Case case_;
  Type type_;
  int rank_;
  std::size_t own_at_ = 0;
  int result_unit_ = 0;
  bool has_result_ = true;
  std::vector<unsigned char> in_, out_, before_;
  unsigned char *input_ = nullptr, *output_ = nullptr;
};

// Calls visit(case, type) for the cases of an algorithm that sums at p ranks: types and operations
// in turn, roots, in place, uneven units, segments or blocks.
template <class Visit>
void for_each_sum(const Algorithm& a, int p, Visit&& visit) {
  if (!has_op(a.collective)) return;
  if (a.uses(Access::staging) && a.rejects({.collective = a.collective, .ranks = p})) return;
  int turn = 0;
  for (std::size_t count : {std::size_t{1}, std::size_t(p) + 1, std::size_t{131}})
    for (const int root : std::set<int>{0, has_root(a.collective) ? p - 1 : 0})
      for (const bool in_place : {false, true})
        for (const Type type : kFloats) {
          Case c{a.collective, a.name, p, count, root, in_place};
          c.op = kInexact[++turn % 3];
          visit(c, type);
          if (turn % 2 == 0 && a.takes.blocks) c.knobs.blocks = 2 + turn % 3;
          else if (turn % 2 == 0 && !a.uses(Access::staging))
            c.segments = 2 + turn % 4, c.window = 1 + turn % 3;
          else if (a.collective == Collective::reduce_scatter && !a.is_load_store()) c.uneven =
              true;
          else continue;
          visit(c, type);
        }
}

}  // namespace paceline::test
