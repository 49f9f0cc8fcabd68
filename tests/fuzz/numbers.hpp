// The numbers that go into a reduction, and whether one that came out of it can be right.
//
// Integers, minima and maxima, and sums of whole numbers are held against their exact bits. A sum
// or product that rounds may be off by what its additions may lose in any order, no more: it is
// compared with the exact one (Shewchuk's expansions for sums, long double for products).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "fuzz/program.hpp"

namespace paceline::fuzz {

// What is reduced: by which operation, of which numbers, over how many ranks.
struct Reduction {
  Type type;
  Op op;
  Values values;
  int ranks;
};

// The bits of an element: of the rank at a position, from a seed of that element's own. `index`
// seeds what all ranks have in common there.
std::uint64_t number(const Reduction& reduction, int position, std::uint64_t seed,
                     std::uint64_t index);
// Any bits that are a value of the type, for data that only move.
std::uint64_t any_bits(Type type, std::uint64_t seed);

// Empty, or what is wrong with `got` as the reduction of these bits, one of each rank.
std::string flaw(const Reduction& reduction, const std::vector<std::uint64_t>& sources,
                 std::uint64_t got);

// The sum of all terms, right but for the last bit (J. R. Shewchuk, Adaptive Precision
// Floating-Point Arithmetic and Fast Robust Geometric Predicates, Discrete & Computational Geometry
// 18, 1997). Terms are finite, and small enough that no partial sum overflows.
double exact_sum(const std::vector<double>& terms);

}  // namespace paceline::fuzz
