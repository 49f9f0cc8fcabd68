/* A program to be profiled: every collective in every form that the MPI has, and one rank late.

   profiled            all calls, on the world and on a half of it
   profiled near       neighbourhood collectives, on a ring and on a graph
   profiled persistent each collective three times, which ranks start in different orders
   profiled late RANK  allreduces before which that rank sleeps
   profiled die RANK   that rank ends without a word in the middle
   profiled cost       how long an empty barrier of one rank takes */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, ROUNDS = 3, LATE = 20, LATE_US = 60000 };

static int rank, ranks;
static double in[MOST * 8], out[MOST * 8];
static int counts[MOST], places[MOST];
static MPI_Datatype types[MOST];

static void wait_for(MPI_Request* request, int how) {
  int flag = 0, index = 0, done = 0;
  MPI_Status status;
  switch (how % 4) {
    case 0: MPI_Wait(request, MPI_STATUS_IGNORE); break;
    case 1: MPI_Waitall(1, request, &status); break;
    case 2:
      while (!flag) MPI_Test(request, &flag, MPI_STATUS_IGNORE);
      break;
    default:
      (void)done;
      MPI_Waitany(1, request, &index, &status);
  }
}

static void blocking(MPI_Comm comm, int p) {
  MPI_Allreduce(in, out, 4, MPI_DOUBLE, MPI_SUM, comm);
  MPI_Bcast(out, 4, MPI_DOUBLE, 0, comm);
  MPI_Reduce(in, out, 4, MPI_DOUBLE, MPI_SUM, 0, comm);
  MPI_Reduce_scatter_block(in, out, 2, MPI_DOUBLE, MPI_SUM, comm);
  MPI_Allgather(in, 2, MPI_DOUBLE, out, 2, MPI_DOUBLE, comm);
  MPI_Barrier(comm);
  MPI_Reduce_scatter(in, out, counts, MPI_DOUBLE, MPI_SUM, comm);
  MPI_Allgatherv(in, 2, MPI_DOUBLE, out, counts, places, MPI_DOUBLE, comm);
  MPI_Gather(in, 2, MPI_DOUBLE, out, 2, MPI_DOUBLE, p - 1, comm);
  MPI_Gatherv(in, 2, MPI_DOUBLE, out, counts, places, MPI_DOUBLE, 0, comm);
  MPI_Scatter(in, 2, MPI_DOUBLE, out, 2, MPI_DOUBLE, p - 1, comm);
  MPI_Scatterv(in, counts, places, MPI_DOUBLE, out, 2, MPI_DOUBLE, 0, comm);
  MPI_Alltoall(in, 2, MPI_DOUBLE, out, 2, MPI_DOUBLE, comm);
  MPI_Alltoallv(in, counts, places, MPI_DOUBLE, out, counts, places, MPI_DOUBLE, comm);
  int bytes[MOST];
  for (int r = 0; r < p; ++r) bytes[r] = places[r] * (int)sizeof(double);
  MPI_Alltoallw(in, counts, bytes, types, out, counts, bytes, types, comm);
  MPI_Scan(in, out, 4, MPI_DOUBLE, MPI_SUM, comm);
  MPI_Exscan(in, out, 4, MPI_DOUBLE, MPI_SUM, comm);
}

static void non_blocking(MPI_Comm comm, int p) {
  MPI_Request request;
  int how = 0;
  MPI_Iallreduce(in, out, 4, MPI_DOUBLE, MPI_SUM, comm, &request);
  wait_for(&request, how++);
  MPI_Ibcast(out, 4, MPI_DOUBLE, 0, comm, &request);
  wait_for(&request, how++);
  MPI_Ireduce(in, out, 4, MPI_DOUBLE, MPI_SUM, 0, comm, &request);
  wait_for(&request, how++);
  MPI_Ireduce_scatter_block(in, out, 2, MPI_DOUBLE, MPI_SUM, comm, &request);
  wait_for(&request, how++);
  MPI_Iallgather(in, 2, MPI_DOUBLE, out, 2, MPI_DOUBLE, comm, &request);
  wait_for(&request, how++);
  MPI_Ibarrier(comm, &request);
  wait_for(&request, how++);
  MPI_Ireduce_scatter(in, out, counts, MPI_DOUBLE, MPI_SUM, comm, &request);
  wait_for(&request, how++);
  MPI_Iallgatherv(in, 2, MPI_DOUBLE, out, counts, places, MPI_DOUBLE, comm, &request);
  wait_for(&request, how++);
  MPI_Igather(in, 2, MPI_DOUBLE, out, 2, MPI_DOUBLE, p - 1, comm, &request);
  wait_for(&request, how++);
  MPI_Igatherv(in, 2, MPI_DOUBLE, out, counts, places, MPI_DOUBLE, 0, comm, &request);
  wait_for(&request, how++);
  MPI_Iscatter(in, 2, MPI_DOUBLE, out, 2, MPI_DOUBLE, p - 1, comm, &request);
  wait_for(&request, how++);
  MPI_Iscatterv(in, counts, places, MPI_DOUBLE, out, 2, MPI_DOUBLE, 0, comm, &request);
  wait_for(&request, how++);
  MPI_Ialltoall(in, 2, MPI_DOUBLE, out, 2, MPI_DOUBLE, comm, &request);
  wait_for(&request, how++);
  MPI_Iscan(in, out, 4, MPI_DOUBLE, MPI_SUM, comm, &request);
  wait_for(&request, how++);
  MPI_Iexscan(in, out, 4, MPI_DOUBLE, MPI_SUM, comm, &request);
  wait_for(&request, how++);
}

static void everything(void) {
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
  int p = 0;
  MPI_Comm_size(half, &p);
  for (int round = 0; round < ROUNDS; ++round) {
    blocking(MPI_COMM_WORLD, ranks);
    non_blocking(MPI_COMM_WORLD, ranks);
    blocking(half, p);
  }
#if MPI_VERSION >= 4
  MPI_Allreduce_c(in, out, (MPI_Count)4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Alltoall_c(in, (MPI_Count)2, MPI_DOUBLE, out, (MPI_Count)2, MPI_DOUBLE, MPI_COMM_WORLD);
#endif
  MPI_Comm_free(&half);
}

/* Each rank hears two others on the ring, and one on the graph. */
static void near(void) {
  MPI_Comm ring, graph;
  MPI_Request request;
  const int periodic = 1, weight = 1, from = (rank + 1) % ranks, to = (rank + ranks - 1) % ranks;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &ring);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, &weight, 1, &to, &weight, MPI_INFO_NULL,
                                 0, &graph);
  MPI_Aint bytes[MOST];
  for (int r = 0; r < MOST; ++r) bytes[r] = places[r] * (MPI_Aint)sizeof(double);
  const MPI_Comm both[] = {ring, graph};
  for (int i = 0; i < 2; ++i) {
    MPI_Neighbor_allgather(in, 2, MPI_DOUBLE, out, 2, MPI_DOUBLE, both[i]);
    MPI_Neighbor_allgatherv(in, 2, MPI_DOUBLE, out, counts, places, MPI_DOUBLE, both[i]);
    MPI_Neighbor_alltoall(in, 2, MPI_DOUBLE, out, 2, MPI_DOUBLE, both[i]);
    MPI_Neighbor_alltoallv(in, counts, places, MPI_DOUBLE, out, counts, places, MPI_DOUBLE,
                           both[i]);
    MPI_Neighbor_alltoallw(in, counts, bytes, types, out, counts, bytes, types, both[i]);
    MPI_Ineighbor_allgather(in, 2, MPI_DOUBLE, out, 2, MPI_DOUBLE, both[i], &request);
    wait_for(&request, 0);
    MPI_Ineighbor_alltoallw(in, counts, bytes, types, out, counts, bytes, types, both[i],
                            &request);
    wait_for(&request, 1);
  }
  MPI_Comm_free(&ring);
  MPI_Comm_free(&graph);
}

/* MPI matches them where they are made, so that ranks may start them in orders of their own. A
   request of a pair of ranks is beside them; what is freed is made anew. */
static void persistent(void) {
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
  enum { CALLS = 4 };
  const MPI_Comm world = MPI_COMM_WORLD;
  double sums[4] = {0}, sent = rank, from = 0;
  MPI_Request calls[CALLS], pair;
  MPI_Status statuses[CALLS];
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  MPI_Recv_init(&from, 1, MPI_DOUBLE, before, 7, world, &pair);
  for (int turn = 0; turn < 2; ++turn) {
    MPI_Allreduce_init(in, sums, 4, MPI_DOUBLE, MPI_SUM, world, MPI_INFO_NULL, &calls[0]);
    MPI_Bcast_init(out, 2, MPI_DOUBLE, 0, world, MPI_INFO_NULL, &calls[1]);
    MPI_Barrier_init(world, MPI_INFO_NULL, &calls[2]);
    MPI_Allgather_init(in, 2, MPI_DOUBLE, out + 8, 2, MPI_DOUBLE, world, MPI_INFO_NULL, &calls[3]);
    for (int round = 0; round < ROUNDS; ++round) {
      if (rank == 1) usleep(LATE_US);
      MPI_Start(&pair);
      if (rank % 2) {
        for (int i = CALLS; i-- > 0;) MPI_Start(&calls[i]);
      } else {
        MPI_Startall(CALLS, calls);
      }
      MPI_Send(&sent, 1, MPI_DOUBLE, next, 7, world);
      for (int left = CALLS, index = 0; left > 0 && round == 0; --left)
        MPI_Waitany(CALLS, calls, &index, MPI_STATUS_IGNORE);
      MPI_Waitall(CALLS, calls, statuses);
      MPI_Wait(&pair, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < CALLS; ++i) MPI_Request_free(&calls[i]);
  }
  MPI_Request_free(&pair);
  MPI_Allreduce(in, sums, 4, MPI_DOUBLE, MPI_SUM, world);
#endif
}

static void late(int who) {
  for (int i = 0; i < LATE; ++i) {
    if (rank == who) usleep(LATE_US);
    MPI_Allreduce(in, out, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
}

static void die(int who) {
  for (int i = 0; i < LATE; ++i) {
    MPI_Allreduce(in, out, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == who && i == LATE / 2) _exit(3);
  }
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* The fastest of many short series: whoever else uses the machine only adds. */
static void cost(void) {
  double least = 1e9;
  MPI_Comm_rank(MPI_COMM_SELF, &rank);
  for (int series = 0; series < 400; ++series) {
    const double begin = now_ns();
    for (int i = 0; i < 250; ++i) MPI_Barrier(MPI_COMM_SELF);
    const double took = (now_ns() - begin) / 250;
    if (took < least) least = took;
  }
  printf("%.1f ns a call\n", least);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int r = 0; r < MOST; ++r) {
    counts[r] = 2;
    places[r] = 2 * r;
    types[r] = MPI_DOUBLE;
  }
  const char* what = argc > 1 ? argv[1] : "all";
  if (strcmp(what, "one_node") == 0) near();
  else if (strcmp(what, "persistent") == 0) persistent();
  else if (strcmp(what, "late") == 0) late(atoi(argv[2]));
  else if (strcmp(what, "die") == 0) die(atoi(argv[2]));
  else if (strcmp(what, "cost") == 0) cost();
  else everything();
  MPI_Finalize();
  return 0;
}
