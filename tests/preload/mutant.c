/* Preloaded in place of the library: every call leaves one bit wrong on the last rank, at its end.
   tests/preload/collectives.c must notice each. */
#include <mpi.h>

#define LENGTH_OF(count, type, bytes) int bytes; PMPI_Type_size(type, &bytes); bytes *= (count)

static void spoil(void* buffer, int bytes, MPI_Comm comm) {
  int rank, size;
  PMPI_Comm_rank(comm, &rank), PMPI_Comm_size(comm, &size);
  if (rank == size - 1 && size > 1 && bytes > 0 && buffer) ((unsigned char*)buffer)[bytes - 1] ^= 1;
}

int MPI_Allreduce(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const int code = PMPI_Allreduce(in, out, n, type, op, comm);
  LENGTH_OF(n, type, bytes);
  spoil(out, bytes, comm);
  return code;
}

int MPI_Reduce(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
  const int code = PMPI_Reduce(in, out, n, type, op, root, comm);
  LENGTH_OF(n, type, bytes);
  spoil(out, bytes, comm);
  return code;
}

int MPI_Reduce_scatter_block(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  const int code = PMPI_Reduce_scatter_block(in, out, n, type, op, comm);
  LENGTH_OF(n, type, bytes);
  spoil(out, bytes, comm);
  return code;
}

int MPI_Bcast(void* buffer, int n, MPI_Datatype type, int root, MPI_Comm comm) {
  const int code = PMPI_Bcast(buffer, n, type, root, comm);
  LENGTH_OF(n, type, bytes);
  spoil(buffer, bytes, comm);
  return code;
}

int MPI_Allgather(const void* in, int n, MPI_Datatype type, void* out, int m, MPI_Datatype into,
                  MPI_Comm comm) {
  const int code = PMPI_Allgather(in, n, type, out, m, into, comm);
  LENGTH_OF(m, into, bytes);
  spoil(out, bytes, comm);
  return code;
}
