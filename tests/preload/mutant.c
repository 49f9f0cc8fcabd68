/* Preloaded in place of the library: every call leaves one bit wrong on the last rank, at its end.
   tests/preload/collectives.c must notice each. */
#include <mpi.h>
#include <stddef.h>

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

/* Those with a piece for each rank. */
#define PIECES(name, types, values, buffer, n, type) \
  int MPI_##name types {                             \
    const int code = PMPI_##name values;             \
    LENGTH_OF(n, type, bytes);                       \
    spoil(buffer, bytes, comm);                      \
    return code;                                     \
  }

PIECES(Gather, (const void* in, int n, MPI_Datatype type, void* out, int m, MPI_Datatype into,
                int root, MPI_Comm comm), (in, n, type, out, m, into, root, comm), out, m, into)
PIECES(Scatter, (const void* in, int n, MPI_Datatype type, void* out, int m, MPI_Datatype into,
                 int root, MPI_Comm comm), (in, n, type, out, m, into, root, comm),
       out == MPI_IN_PLACE ? NULL : out, m, into)
PIECES(Alltoall, (const void* in, int n, MPI_Datatype type, void* out, int m, MPI_Datatype into,
                  MPI_Comm comm), (in, n, type, out, m, into, comm), out, m, into)
PIECES(Allgatherv, (const void* in, int n, MPI_Datatype type, void* out, const int* counts,
                    const int* places, MPI_Datatype into, MPI_Comm comm),
       (in, n, type, out, counts, places, into, comm), out, 1, into)
PIECES(Gatherv, (const void* in, int n, MPI_Datatype type, void* out, const int* counts,
                 const int* places, MPI_Datatype into, int root, MPI_Comm comm),
       (in, n, type, out, counts, places, into, root, comm), out, 1, into)
PIECES(Scatterv, (const void* in, const int* counts, const int* places, MPI_Datatype type,
                  void* out, int m, MPI_Datatype into, int root, MPI_Comm comm),
       (in, counts, places, type, out, m, into, root, comm), out == MPI_IN_PLACE ? NULL : out, m,
       into)
PIECES(Alltoallv, (const void* in, const int* counts, const int* places, MPI_Datatype type,
                   void* out, const int* received, const int* received_places, MPI_Datatype into,
                   MPI_Comm comm),
       (in, counts, places, type, out, received, received_places, into, comm), out, 1, into)
PIECES(Reduce_scatter, (const void* in, void* out, const int* counts, MPI_Datatype type, MPI_Op op,
                        MPI_Comm comm), (in, out, counts, type, op, comm), out, 1, type)

/* Started calls, complete at once. */
int MPI_Iallreduce(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  const int code = MPI_Allreduce(in, out, n, type, op, comm);
  PMPI_Ibarrier(MPI_COMM_SELF, request);
  return code;
}

int MPI_Ialltoall(const void* in, int n, MPI_Datatype type, void* out, int m, MPI_Datatype into,
                  MPI_Comm comm, MPI_Request* request) {
  const int code = MPI_Alltoall(in, n, type, out, m, into, comm);
  PMPI_Ibarrier(MPI_COMM_SELF, request);
  return code;
}
