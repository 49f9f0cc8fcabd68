// Refusals: calls with arguments that the host MPI would refuse pass to it.
//
// MPIs, their versions and their settings differ in what they refuse. So each process makes a wrong
// call of each kind once, on a communicator of this rank alone. A refused rank has sent nothing,
// with the host as with Paceline.
#pragma once

#include <cstdint>

#include "comm_state.hpp"

namespace paceline::preload {

// Buffers of this rank's part; a buffer without a part is given as the other one.
struct Buffers {
  const void *in, *out;
  const void* own;  // address that `in` must not have; null: it may have any
  std::int64_t count;
};

// Slow part of are_refused(), for buffers that look wrong.
bool are_refused_by_host(Collective collective, const Buffers& buffers);

// True if the host would refuse the buffers of a call that is Paceline's. Throws a usage error for
// a wrong MPI_IN_PLACE that the host would accept.
inline bool are_refused(Collective collective, const Buffers& b) {
  if (b.in && b.out && b.in != b.own && b.out != MPI_IN_PLACE) return false;
  return are_refused_by_host(collective, b);
}

// The same for a buffer whose datatype is not predefined, for instance not committed.
bool is_refused(const void* buffer, std::int64_t count, MPI_Datatype type);

}  // namespace paceline::preload
