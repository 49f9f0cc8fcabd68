// The algorithms there are, one line each: tests, simulator, bench, CLI and docs read this list.
#pragma once

#include <span>
#include <string_view>

#include "ir/algorithm.hpp"

// X(name of the constant): the constant is defined in src/coll/<collective>/<algorithm>.cpp
#define PACELINE_ALGORITHMS(X)    \
  X(allreduce_ring)               \
  X(allreduce_recursive_doubling) \
  X(allreduce_binomial)           \
  X(broadcast_binomial)           \
  X(broadcast_chain)              \
  X(reduce_binomial)              \
  X(reduce_scatter_ring)          \
  X(allgather_ring)               \
  X(alltoall_pairwise)            \
  X(gather_linear)                \
  X(scatter_linear)               \
  X(barrier_dissemination)

namespace paceline {

#define PACELINE_DECLARE(name) extern const Algorithm name;
PACELINE_ALGORITHMS(PACELINE_DECLARE)
#undef PACELINE_DECLARE

std::span<const Algorithm* const> registry();

// Throws a usage error that lists the algorithms of the collective.
const Algorithm& find_algorithm(Collective collective, std::string_view name);

}  // namespace paceline
