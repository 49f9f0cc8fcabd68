// Calls that the host MPI serves because its own collective is faster.
#pragma once

#include <cstddef>

#include "base/types.hpp"
#include "ir/problem.hpp"

namespace paceline::preload {

// Size of a call, equal on all its ranks, so that all decide alike.
struct Size {
  Collective collective;
  std::size_t bytes;  // of the longer one of the call's buffers
  int ranks, nodes;
};

// No measurement so far favours the host (docs/design/0018-drop-in.md). Any that does must leave
// the sums of numbers=canonical to Paceline: the host's order is unknown.
inline bool is_hosts_faster(const Size&) { return false; }

}  // namespace paceline::preload
