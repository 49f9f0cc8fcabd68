/* Calls that this MPI lacks, and that the drop-in library of another one shows all the same: those
   with long counts do what they should, or are errors that a program sees; the same on any number
   of ranks. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8 };
typedef int64_t wide;

static int rank, ranks, failures;

static void check(int is_right, const char* what) {
  if (!is_right) printf("rank %d: %s is wrong\n", rank, what), ++failures;
}

static void* shown(const char* name) {
  void* call = dlsym(RTLD_DEFAULT, name);
  if (!call) printf("%s is not shown\n", name), exit(3);
  return call;
}

/* Item i of what rank `from` sends to rank `to`. */
static int value(int from, int to, int i) { return 1 + i + 10 * to + 1000 * from; }

static wide counts[MOST], places[MOST];   /* r + 1 for rank r */
static int in[MOST * MOST], out[MOST * MOST];

/* What every rank but `to` has sent to it, and itself. */
static int is_gathered(int to) {
  for (int r = 0; r < ranks; ++r)
    for (int i = 0; i < counts[r]; ++i)
      if (out[places[r] + i] != value(r, to, i)) return 0;
  return 1;
}

static void fill(int to) {
  memset(out, 0, sizeof out);
  for (int i = 0; i < MOST; ++i) in[i] = value(rank, to, i);
}

static void one_count(void) {
  int (*gather)(const void*, wide, MPI_Datatype, void*, wide, MPI_Datatype, int, MPI_Comm) =
      shown("MPI_Gather_c");
  fill(ranks - 1);
  gather(in, 2, MPI_INT, out, 2, MPI_INT, ranks - 1, MPI_COMM_WORLD);
  for (int r = 0; r < ranks && rank == ranks - 1; ++r)
    check(out[2 * r + 1] == value(r, ranks - 1, 1), "Gather_c");
  int (*scan)(const void*, void*, wide, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*) =
      shown("MPI_Iscan_c");
  MPI_Request request;
  const int one = 1;
  int sum = 0;
  scan(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(sum == rank + 1, "Iscan_c");
}

/* Counts are read at the root alone. */
static void at_root(void) {
  int (*gatherv)(const void*, wide, MPI_Datatype, void*, const wide*, const MPI_Aint*,
                 MPI_Datatype, int, MPI_Comm) = shown("MPI_Gatherv_c");
  fill(0);
  const int is_root = rank == 0;
  gatherv(in, rank + 1, MPI_INT, is_root ? out : NULL, is_root ? counts : (const wide*)8,
          is_root ? (const MPI_Aint*)places : NULL, MPI_INT, 0, MPI_COMM_WORLD);
  if (is_root) check(is_gathered(0), "Gatherv_c");
}

static void everywhere(void) {
  int (*allgatherv)(const void*, wide, MPI_Datatype, void*, const wide*, const MPI_Aint*,
                    MPI_Datatype, MPI_Comm, MPI_Request*) = shown("MPI_Iallgatherv_c");
  MPI_Request request;
  fill(0);
  allgatherv(in, rank + 1, MPI_INT, out, counts, (const MPI_Aint*)places, MPI_INT, MPI_COMM_WORLD,
             &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(is_gathered(0), "Iallgatherv_c");
  int (*sum)(const void*, void*, const wide*, MPI_Datatype, MPI_Op, MPI_Comm) =
      shown("MPI_Reduce_scatter_c");
  for (int i = 0; i < MOST * MOST; ++i) in[i] = i, out[i] = 0;
  sum(in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(out[rank] == ranks * (places[rank] + rank), "Reduce_scatter_c");
}

/* In place the counts of what is sent are not read. */
static void in_place(void) {
  int (*alltoallv)(const void*, const wide*, const MPI_Aint*, MPI_Datatype, void*, const wide*,
                   const MPI_Aint*, MPI_Datatype, MPI_Comm) = shown("MPI_Alltoallv_c");
  wide ones[MOST], at[MOST];
  for (int r = 0; r < ranks; ++r) ones[r] = 1, at[r] = r, out[r] = value(rank, r, 0);
  alltoallv(MPI_IN_PLACE, (const wide*)8, NULL, MPI_INT, out, ones, (const MPI_Aint*)at, MPI_INT,
            MPI_COMM_WORLD);
  for (int r = 0; r < ranks; ++r) check(out[r] == value(r, rank, 0), "Alltoallv_c in place");
}

/* On the ring one item goes up, and one down. The graph has other numbers of neighbours to send to
   than to receive from. */
static void near(void) {
  int (*alltoallv)(const void*, const wide*, const MPI_Aint*, MPI_Datatype, void*, const wide*,
                   const MPI_Aint*, MPI_Datatype, MPI_Comm) = shown("MPI_Neighbor_alltoallv_c");
  const int periodic = 1, up = (rank + 1) % ranks, down = (rank + ranks - 1) % ranks;
  const wide ones[] = {1, 1}, at[] = {1, 0};
  MPI_Comm ring, graph;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &ring);
  in[1] = value(rank, down, 0), in[0] = value(rank, up, 0);
  alltoallv(in, ones, (const MPI_Aint*)at, MPI_INT, out, ones, (const MPI_Aint*)at, MPI_INT, ring);
  check(out[1] % 1000 == value(0, rank, 0) && out[1] / 1000 == down, "Neighbor_alltoallv_c, ring");
  check(out[0] % 1000 == value(0, rank, 0) && out[0] / 1000 == up, "Neighbor_alltoallv_c, ring");
  /* Rank 0 sends to all, itself among them. */
  const wide sent[] = {1, 1, 1, 1, 1, 1, 1, 1}, there[] = {0, 1, 2, 3, 4, 5, 6, 7};
  int to[MOST], weights[MOST];
  const int from = 0, n = rank == 0 ? ranks : 0;
  for (int r = 0; r < MOST; ++r) to[r] = r, weights[r] = 1, in[r] = value(rank, r, 0);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, weights, n, to, weights, MPI_INFO_NULL,
                                 0, &graph);
  out[0] = out[1] = -1;
  alltoallv(in, n ? sent : NULL, n ? (const MPI_Aint*)there : NULL, MPI_INT, out, ones,
            (const MPI_Aint*)at + 1, MPI_INT, graph);
  check(out[0] == value(0, rank, 0) && out[1] == -1, "Neighbor_alltoallv_c, graph");
  MPI_Comm_free(&ring);
  MPI_Comm_free(&graph);
}

/* What cannot be done is an error of this communicator, on the rank that asks for it. */
static void refused(void) {
  MPI_Comm own;
  MPI_Comm_dup(MPI_COMM_SELF, &own);
  MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  int (*allgather)(const void*, wide, MPI_Datatype, void*, wide, MPI_Datatype, MPI_Comm) =
      shown("MPI_Allgather_c");
  const wide long_one = (wide)1 << 31;
  check(allgather(in, long_one, MPI_BYTE, out, long_one, MPI_BYTE, own) == MPI_ERR_COUNT,
        "Allgather_c of 2 GiB");
  int (*alltoallw)(const void*, const wide*, const MPI_Aint*, const MPI_Datatype*, void*,
                   const wide*, const MPI_Aint*, const MPI_Datatype*, MPI_Comm) =
      shown("MPI_Alltoallw_c");
  const MPI_Datatype type = MPI_BYTE;
  const MPI_Aint zero = 0;
  check(alltoallw(in, &long_one, &zero, &type, out, &long_one, &zero, &type, own) == MPI_ERR_COUNT,
        "Alltoallw_c of 2 GiB");
  void* call = dlsym(RTLD_DEFAULT, "PMPI_Barrier_init");
  int (*barrier)(MPI_Comm, MPI_Info, MPI_Request*) = shown("MPI_Barrier_init");
  MPI_Request request;
  const int status = barrier(own, MPI_INFO_NULL, &request);
  check((status == MPI_SUCCESS) == (call != NULL), "Barrier_init");
  if (status == MPI_SUCCESS) MPI_Request_free(&request);
  MPI_Comm_free(&own);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int r = 0; r < ranks; ++r) counts[r] = r + 1, places[r] = r ? places[r - 1] + r : 0;
  one_count();
  at_root();
  everywhere();
  in_place();
  near();
  refused();
  if (!failures) printf("rank %d: right\n", rank);
  MPI_Finalize();
  return failures != 0;
}
