// MpiCall: an MPI's own collectives, which are measured beside Paceline's.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/types.hpp"
#include "ir/problem.hpp"
#include "transport/mpi/library.hpp"

namespace paceline {

// How an MPI is made to do it: by its blocking collective; by several non-blocking ones at once, on
// equal parts of the message, and a wait for all of them; by a ring of its Sendrecv.
enum class MpiForm { blocking, concurrent, sendrecv_ring };
MpiForm mpi_form_from(std::string_view name);   // throws a usage error

// One call of the MPI's own collective, for comparison. Equal units; see Call in
// runtime/communicator.hpp for what the buffers mean.
struct MpiCall {
  Collective collective = Collective::barrier;
  Type type = Type::u8;
  Op op = Op::sum;
  int root = 0;
  const void* input = nullptr;  // equal to output: in place, where the collective allows it
  void* output = nullptr;
  std::size_t count = 0;  // elements of a unit
  MpiForm form = MpiForm::blocking;
  std::size_t parts = 1;  // of `concurrent`: how many calls
};

// Complete on return. Throws a refusal for types and operations that MPI has none for (16-bit
// floats, average), for collectives that the form cannot do, and for worlds of another binary
// interface than the three that MpiLibrary loads.
void call_mpi(MpiWorld& world, const MpiCall& call);

}  // namespace paceline
