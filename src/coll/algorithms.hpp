// The list of algorithms, one line each. Code that wants them all asks the registry; an algorithm
// that is made of another one names it here.
#pragma once

#include "ir/algorithm.hpp"

// X(name of the constant): the constant is defined in src/coll/<collective>/<algorithm>.cpp
#define PACELINE_ALGORITHMS(X)         \
  X(allreduce_ring)                    \
  X(allreduce_recursive_doubling)      \
  X(allreduce_binomial)                \
  X(allreduce_circulant)               \
  X(allreduce_rabenseifner)            \
  X(allreduce_chain)                   \
  X(allreduce_direct)                  \
  X(allreduce_recursive_multiplying)   \
  X(allreduce_dual_root)               \
  X(allreduce_gather)                  \
  X(allreduce_bruck)                   \
  X(allreduce_double_binary_tree)      \
  X(allreduce_symmetric)               \
  X(allreduce_one_shot)                \
  X(allreduce_two_shot)                \
  X(allreduce_dynamic_leader)          \
  X(allreduce_arrival_leader)          \
  X(allreduce_arrival_chain)           \
  X(allreduce_hierarchical)            \
  X(allreduce_hierarchical_rsa)        \
  X(allreduce_multilane)               \
  X(allreduce_multilane_direct)        \
  X(allreduce_multilane_tail_direct)   \
  X(allreduce_multilane_tail_as_ring)  \
  X(allreduce_sorted_chain)            \
  X(allreduce_tail_direct)             \
  X(allreduce_tail_as_ring)            \
  X(broadcast_binomial)                \
  X(broadcast_chain)                   \
  X(broadcast_scatter_allgather)       \
  X(broadcast_scatter_circulant)       \
  X(broadcast_circulant)               \
  X(broadcast_symmetric)               \
  X(broadcast_staged)                  \
  X(broadcast_single_copy)             \
  X(broadcast_hierarchical)            \
  X(broadcast_hierarchical_chain)      \
  X(broadcast_sorted_chain)            \
  X(reduce_binomial)                   \
  X(reduce_k_nomial)                   \
  X(reduce_linear)                     \
  X(reduce_chain)                      \
  X(reduce_scatter_gather)             \
  X(reduce_circulant)                  \
  X(reduce_direct)                     \
  X(reduce_gather)                     \
  X(reduce_bruck)                      \
  X(reduce_staged)                     \
  X(reduce_two_shot)                   \
  X(reduce_arrival_chain)              \
  X(reduce_hierarchical)               \
  X(reduce_hierarchical_chain)         \
  X(reduce_tail_direct)                \
  X(reduce_scatter_ring)               \
  X(reduce_scatter_circulant)          \
  X(reduce_scatter_recursive_halving)  \
  X(reduce_scatter_direct)             \
  X(reduce_scatter_bruck)              \
  X(reduce_scatter_symmetric)          \
  X(reduce_scatter_staged)             \
  X(reduce_scatter_hierarchical)       \
  X(reduce_scatter_multilane)          \
  X(allgather_ring)                    \
  X(allgather_circulant)               \
  X(allgather_recursive_doubling)      \
  X(allgather_linear)                  \
  X(allgather_symmetric)               \
  X(allgather_staged)                  \
  X(allgather_hierarchical)            \
  X(allgather_multilane)               \
  X(alltoall_pairwise)                 \
  X(alltoall_bruck)                    \
  X(alltoall_symmetric)                \
  X(alltoall_staged)                   \
  X(gather_linear)                     \
  X(gather_binomial)                   \
  X(gather_staged)                     \
  X(scatter_linear)                    \
  X(scatter_binomial)                  \
  X(scatter_staged)                    \
  X(barrier_dissemination)             \
  X(barrier_staged)

namespace paceline {

#define PACELINE_DECLARE(name) extern const Algorithm name;
PACELINE_ALGORITHMS(PACELINE_DECLARE)
#undef PACELINE_DECLARE

}  // namespace paceline
