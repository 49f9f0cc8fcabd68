// Calls that the host MPI would refuse by their arguments alone: they are left to it.
//
// Which those are differs between MPIs, their versions and their settings. So the host is asked: by
// a wrong call on a communicator of this rank alone, once per process and kind of mistake. A rank
// that the host refuses has sent nothing, here as there.
#pragma once

#include "comm_state.hpp"

namespace paceline::preload {

// What this rank takes part with; a buffer that it does not take part with is named as the other.
struct Buffers {
  const void *in, *out;
  const void* own;  // where `in` may not be; null: it may be anywhere
  int count;
};

// What are_refused() finds where the buffers look wrong.
bool are_refused_by_host(Collective collective, const Buffers& buffers);

// Where a call is ours, whether the host would refuse its buffers. Throws a usage error for
// MPI_IN_PLACE where data must be, if the host would go on with it.
inline bool are_refused(Collective collective, const Buffers& b) {
  if (b.in && b.out && b.in != b.own && b.out != MPI_IN_PLACE) return false;
  return are_refused_by_host(collective, b);
}

// The same for a buffer that is described by a datatype which is not predefined: one that is not
// committed, say.
bool is_refused(const void* buffer, int count, MPI_Datatype type);

// Before MPI ends; nothing is asked afterwards.
void end_refusals();

}  // namespace paceline::preload
