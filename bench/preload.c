/* Collectives of an MPI program under the drop-in library, beside the MPI's own: MPI_ and PMPI_ by
   turns, medians of 15 rounds. Prints for each call and length, in bytes of a rank's piece, how
   long both take and how many times as fast the served one is.

     mpicc -O2 bench/preload.c -o calls
     LD_PRELOAD=$(paceline preload) mpiexec -n 2 ./calls [name of a call ...] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 15, LONGEST = 4 << 20, MOST_RANKS = 256 };

static int rank, ranks, counts[MOST_RANKS], places[MOST_RANKS];
static char *in, *out;
static MPI_Op own;

#define CALL(name, parameters, call)                 \
  static void name(int is_served, int n, int root) { \
    (void)n, (void)root;                             \
    if (is_served) MPI_##call parameters;            \
    else PMPI_##call parameters;                     \
  }
#define HERE MPI_COMM_WORLD
#define DOUBLES(n) ((n) < 8 ? 1 : (n) / 8), MPI_DOUBLE, MPI_SUM
CALL(own_allreduce, (in, out, n < 8 ? 1 : n / 8, MPI_DOUBLE, own, HERE), Allreduce)
CALL(allreduce, (in, out, DOUBLES(n), HERE), Allreduce)
CALL(reduce, (in, out, DOUBLES(n), root, HERE), Reduce)
CALL(reduce_scatter_block, (in, out, DOUBLES(n), HERE), Reduce_scatter_block)
CALL(bcast, (in, n, MPI_BYTE, root, HERE), Bcast)
CALL(allgather, (in, n, MPI_BYTE, out, n, MPI_BYTE, HERE), Allgather)
CALL(allgatherv, (in, n, MPI_BYTE, out, counts, places, MPI_BYTE, HERE), Allgatherv)
CALL(alltoall, (in, n, MPI_BYTE, out, n, MPI_BYTE, HERE), Alltoall)
CALL(alltoallv, (in, counts, places, MPI_BYTE, out, counts, places, MPI_BYTE, HERE), Alltoallv)
CALL(gather, (in, n, MPI_BYTE, out, n, MPI_BYTE, root, HERE), Gather)
CALL(gatherv, (in, n, MPI_BYTE, out, counts, places, MPI_BYTE, root, HERE), Gatherv)
CALL(scatter, (in, n, MPI_BYTE, out, n, MPI_BYTE, root, HERE), Scatter)
CALL(scatterv, (in, counts, places, MPI_BYTE, out, n, MPI_BYTE, root, HERE), Scatterv)
CALL(barrier, (HERE), Barrier)

static void add(void* a, void* b, int* n, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *n; ++i) ((double*)b)[i] += ((double*)a)[i];
}

static const struct {
  const char* name;
  void (*run)(int is_served, int n, int root);
  int has_root, has_length;
} calls[] = {
    {"allreduce", allreduce, 0, 1},   {"own_allreduce", own_allreduce, 0, 1},
    {"reduce", reduce, 1, 1},
    {"reduce_scatter_block", reduce_scatter_block, 0, 1},
    {"bcast", bcast, 1, 1},           {"allgather", allgather, 0, 1},
    {"allgatherv", allgatherv, 0, 1}, {"alltoall", alltoall, 0, 1},
    {"alltoallv", alltoallv, 0, 1},   {"gather", gather, 1, 1},
    {"gatherv", gatherv, 1, 1},       {"scatter", scatter, 1, 1},
    {"scatterv", scatterv, 1, 1},     {"barrier", barrier, 0, 0},
};

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Microseconds of a call on the slowest rank. Each eighth call with a root has another one: a root
   that only reads, or only writes, would run ahead of the others, or fall behind. */
static double time_of(int which, int is_served, int n) {
  const int times = n > 100000 ? 20 : n > 1024 ? 300 : 3000;
  PMPI_Barrier(HERE);
  for (int i = 0; i < 3; ++i) calls[which].run(is_served, n, 0);
  PMPI_Barrier(HERE);
  const double begun = MPI_Wtime();
  for (int i = 0; i < times; ++i)
    calls[which].run(is_served, n, calls[which].has_root && i % 8 == 7 ? ranks - 1 : 0);
  double took = (MPI_Wtime() - begun) / times * 1e6;
  PMPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, HERE);
  return took;
}

static void measure(int which, int n) {
  double took[2][ROUNDS];
  for (int r = 0; r < ranks; ++r) counts[r] = n, places[r] = r * n;
  for (int round = 0; round < ROUNDS; ++round)
    for (int is_served = 0; is_served < 2; ++is_served)
      took[is_served][round] = time_of(which, is_served, n);
  for (int side = 0; side < 2; ++side) qsort(took[side], ROUNDS, sizeof took[0][0], by_size);
  const double host = took[0][ROUNDS / 2], ours = took[1][ROUNDS / 2];
  if (rank == 0)
    printf("%-20s %8d B  served %9.2f us  host %9.2f us  %5.2f times as fast\n",
           calls[which].name, calls[which].has_length ? n : 0, ours, host, host / ours);
  fflush(stdout);
}

static int is_asked_for(const char* name, int count, char** names) {
  for (int i = 1; i < count; ++i)
    if (strcmp(names[i], name) == 0) return 1;
  return count < 2;
}

int main(int argc, char** argv) {
  static const int lengths[] = {8, 1024, 16384, 262144, LONGEST};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(HERE, &rank), MPI_Comm_size(HERE, &ranks);
  if (ranks > MOST_RANKS) MPI_Abort(HERE, 2);
  const size_t bytes = (size_t)LONGEST * (size_t)ranks;
  in = malloc(bytes), out = malloc(bytes);
  memset(in, 0, bytes), memset(out, 0, bytes);
  MPI_Op_create(add, 1, &own);
  for (size_t which = 0; which < sizeof calls / sizeof calls[0]; ++which)
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; ++i)
      if (is_asked_for(calls[which].name, argc, argv) && (i == 0 || calls[which].has_length))
        measure((int)which, lengths[i]);
  MPI_Op_free(&own);
  free(in), free(out);
  MPI_Finalize();
  return 0;
}
