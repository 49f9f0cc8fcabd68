// Exchange: a call of MPI as one of Paceline, with its buffers.
#pragma once

#include <cstdint>
#include <optional>

#include "comm_state.hpp"
#include "operand.hpp"
#include "runtime/call.hpp"

namespace paceline::preload {

struct Exchange {
  CommState* state;
  MPI_Comm comm;
  Row row;
  Call call = {};
  std::size_t bytes = 0;
  const std::string* algorithm = nullptr;   // for the summary, as is the time of begin()
  double began = 0;
  Operand input = {}, output = {};
  int first_read = 0, pieces_read = 0;   // of the output; the input is read whole
  bool is_written = true;                // the output
  bool may_fold = false;                 // it is blocking (folds.hpp)
  MPI_Op op = MPI_OP_NULL;               // of a fold; else null

  // Counts the call as the host's and returns false.
  bool pass(FallbackReason why);
  void begin();   // copies what is read to where Paceline reads it
  void end();     // copies the result to where the program wants it
  bool is_direct() { return op == MPI_OP_NULL && input.is_direct() && output.is_direct(); }
};

// True if Paceline serves a call of this collective on the communicator; else counts it as the
// host's. `bytes`: of the full message, equal on all ranks; none where some ranks do not know it.
bool is_ours(Exchange& x, Collective collective, std::optional<std::size_t> bytes);

// Each makes the exchange of one call and returns true; or counts the call as the host's and
// returns false: on all ranks, or because the host would refuse this rank's arguments. They throw a
// usage error for wrong arguments that the host would accept.
bool prepare_Allreduce(const void* in, void* out, std::int64_t n, MPI_Datatype type, MPI_Op op,
                       Exchange& x);
bool prepare_Reduce(const void* in, void* out, std::int64_t n, MPI_Datatype type, MPI_Op op,
                    int root, Exchange& x);
bool prepare_Reduce_scatter_block(const void* in, void* out, std::int64_t n, MPI_Datatype type,
                                  MPI_Op op, Exchange& x);
bool prepare_Reduce_scatter(const void* in, void* out, Lengths counts, MPI_Datatype type, MPI_Op op,
                            Exchange& x);
bool prepare_Bcast(void* buffer, std::int64_t n, MPI_Datatype type, int root, Exchange& x);
bool prepare_Barrier(Exchange& x);
bool prepare_Allgather(const void* in, std::int64_t n, MPI_Datatype type, void* out, std::int64_t m,
                       MPI_Datatype into, Exchange& x);
bool prepare_Allgatherv(const void* in, std::int64_t n, MPI_Datatype type, void* out,
                        Lengths counts, Lengths places, MPI_Datatype into, Exchange& x);
bool prepare_Gather(const void* in, std::int64_t n, MPI_Datatype type, void* out, std::int64_t m,
                    MPI_Datatype into, int root, Exchange& x);
bool prepare_Gatherv(const void* in, std::int64_t n, MPI_Datatype type, void* out, Lengths counts,
                     Lengths places, MPI_Datatype into, int root, Exchange& x);
bool prepare_Scatter(const void* in, std::int64_t n, MPI_Datatype type, void* out, std::int64_t m,
                     MPI_Datatype into, int root, Exchange& x);
bool prepare_Scatterv(const void* in, Lengths counts, Lengths places, MPI_Datatype type, void* out,
                      std::int64_t m, MPI_Datatype into, int root, Exchange& x);
bool prepare_Alltoall(const void* in, std::int64_t n, MPI_Datatype type, void* out, std::int64_t m,
                      MPI_Datatype into, Exchange& x);
bool prepare_Alltoallv(const void* in, Lengths counts, Lengths places, MPI_Datatype type, void* out,
                       Lengths received, Lengths received_places, MPI_Datatype into, Exchange& x);

}  // namespace paceline::preload
