// Where the host MPI's own collective is faster than ours: there it takes the call.
#pragma once

#include <cstddef>

#include "base/types.hpp"
#include "ir/problem.hpp"

namespace paceline::preload {

// Equal on all ranks of a call, so all decide alike.
struct Size {
  Collective collective;
  std::size_t bytes;  // of the longer one of the call's buffers
  int ranks, nodes;
};

// Nothing measured so far speaks for the host (docs/design/0018-drop-in.md). What would must leave
// the sums of numbers=canonical to us: the host's order is not known.
inline bool is_hosts_faster(const Size&) { return false; }

}  // namespace paceline::preload
