/* MPI_Iallreduce whole and cut into parts, under the drop-in library and beside the MPI's own: MPI_
   and PMPI_ by turns, medians of ROUNDS. The cuts are listings 1 and 2 of Castello et al.,
   "Accelerating distributed deep neural network training with pipelined MPI allreduce" (2021):
   parts of one length, and a number of parts.

     mpicc -O2 bench/cut.c -o cut
     LD_PRELOAD=$(paceline preload) mpiexec -n 2 ./cut [bytes ...]

   Each result is compared with the sum. Prints the time of each in ms on the slowest rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_PARTS = 1024 };
typedef int Start(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*);

static int rank, ranks, rounds = 9;
static float *in, *out;
static MPI_Request requests[MOST_PARTS];

/* Listing 1: parts of `length` numbers. Returns their number. */
static int start_by_length(Start* start, int count, int length) {
  const int parts = (count + length - 1) / length;
  for (int h = 0; h < parts; ++h) {
    const int n = h < parts - 1 ? length : count - h * length;
    start(in + h * length, out + h * length, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[h]);
  }
  return parts;
}

/* Listing 2: as many parts as asked for; the last one takes what is left over. */
static int start_by_number(Start* start, int count, int parts) {
  if (count < parts) parts = 1;
  const int length = count / parts;
  for (int h = 0; h < parts; ++h) {
    const int n = h < parts - 1 ? length : count - h * length;
    start(in + h * length, out + h * length, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[h]);
  }
  return parts;
}

typedef struct {
  const char* name;
  int (*cut)(Start*, int, int);
  int by; /* bytes, or parts */
} Way;

static const Way ways[] = {
    {"whole", start_by_number, 1},
    {"parts of 256 KiB", start_by_length, 256 << 10},
    {"parts of 1 MiB", start_by_length, 1 << 20},
    {"parts of 4 MiB", start_by_length, 4 << 20},
    {"2 parts", start_by_number, 2},
    {"4 parts", start_by_number, 4},
    {"8 parts", start_by_number, 8},
    {"16 parts", start_by_number, 16},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

static double time_of(const Way* way, Start* start, int count) {
  for (int i = 0; i < count; ++i) in[i] = (float)((i * 7 + rank) % 100), out[i] = 0;
  PMPI_Barrier(MPI_COMM_WORLD);
  const double begun = MPI_Wtime();
  const int by = way->cut == start_by_length ? way->by / (int)sizeof *in : way->by;
  const int parts = way->cut(start, count, by);
  MPI_Waitall(parts, requests, MPI_STATUSES_IGNORE);
  double took = (MPI_Wtime() - begun) * 1e3;
  for (int i = 0; i < count; i += 1 + i / 64) {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) sum += (float)((i * 7 + r) % 100);
    if (out[i] != sum) {
      fprintf(stderr, "rank %d, %s: number %d is wrong\n", rank, way->name, i);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  PMPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return took;
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void measure(int bytes) {
  static double took[2][WAYS][64];
  Start* const sides[] = {PMPI_Iallreduce, MPI_Iallreduce};
  for (int round = -1; round < rounds; ++round) /* the first one is left out */
    for (int way = 0; way < WAYS; ++way)
      for (int side = 0; side < 2; ++side) {
        const double now = time_of(&ways[way], sides[side], bytes / (int)sizeof *in);
        if (round >= 0) took[side][way][round] = now;
      }
  for (int way = 0; way < WAYS; ++way) {
    for (int side = 0; side < 2; ++side)
      qsort(took[side][way], (size_t)rounds, sizeof(double), by_size);
    const double host = took[0][way][rounds / 2], ours = took[1][way][rounds / 2];
    if (rank == 0)
      printf("%9d B  %-16s  served %9.3f ms  host %9.3f ms  %5.2f times as fast\n", bytes,
             ways[way].name, ours, host, host / ours);
  }
  fflush(stdout);
}

int main(int argc, char** argv) {
  static const int lengths[] = {1 << 20, 4 << 20, 16 << 20, 64 << 20};
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (getenv("ROUNDS")) rounds = atoi(getenv("ROUNDS"));
  if (rounds < 1 || rounds > 64) MPI_Abort(MPI_COMM_WORLD, 2);
  in = malloc(64 << 20), out = malloc(64 << 20);
  MPI_Barrier(MPI_COMM_WORLD); /* joins the drop-in */
  for (int i = 1; i < argc; ++i) measure(atoi(argv[i]));
  for (size_t i = 0; argc < 2 && i < sizeof lengths / sizeof lengths[0]; ++i) measure(lengths[i]);
  free(in), free(out);
  MPI_Finalize();
  return 0;
}
