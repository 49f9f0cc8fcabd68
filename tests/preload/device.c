/* Calls whose buffers lie in device memory, on some ranks and not on others, by a feigned driver:
   the argument is its path. Ends with "rank r: n calls ok, c copies", or says what is wrong. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST = 30000, RANKS = 8 };

static int rank, size, calls;
static void* (*device_alloc)(size_t, int);
static void (*take)(void*, size_t);
static int (*copy)(uintptr_t, uintptr_t, size_t), (*push)(void*), (*pop)(void**);
static int (*copies)(void), (*attributes)(unsigned, const int*, void**, uintptr_t);
static int *device_in, *device_out, *managed;
static int host_in[MOST * RANKS], host_out[MOST * RANKS], seen[MOST * RANKS];
static MPI_Datatype holes; /* every other int of four */

static void need(int holds, const char* what, int n, int where) {
  ++calls;
  if (holds) return;
  fprintf(stderr, "rank %d: %s of %d, buffers %d\n", rank, what, n, where);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void move(void* to, const void* from, size_t bytes) {
  const int name = 1; /* the context */
  void *context = NULL, *value[] = {&context};
  attributes(1, &name, value, (uintptr_t)device_in);
  push(context), copy((uintptr_t)to, (uintptr_t)from, bytes), pop(&context);
}

static int value(int of, int i) { return of * 1000003 + i; }

/* Fills both buffers: the input of this rank, and -1. */
static void fill(int* in, int* out) {
  for (int i = 0; i < MOST * RANKS; ++i) seen[i] = value(rank, i);
  move(in, seen, sizeof seen);
  memset(seen, 255, sizeof seen);
  move(out, seen, sizeof seen);
}

static int sum(int i) {
  int all = 0;
  for (int r = 0; r < size; ++r) all += value(r, i);
  return all;
}

static int is_sum(const int* at, int n, int first) {
  for (int i = 0; i < n; ++i)
    if (at[i] != sum(first + i)) return 0;
  return 1;
}

static void reductions(int* in, int* out, int n, int where) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  fill(in, out), MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, comm);
  move(seen, out, sizeof seen), need(is_sum(seen, n, 0) && seen[n] == -1, "allreduce", n, where);
  fill(in, out), MPI_Allreduce(MPI_IN_PLACE, in, n, MPI_INT, MPI_SUM, comm);
  move(seen, in, sizeof seen), need(is_sum(seen, n, 0), "allreduce in place", n, where);
  fill(in, out), MPI_Reduce(in, out, n, MPI_INT, MPI_SUM, size - 1, comm);
  move(seen, out, sizeof seen);
  need(rank < size - 1 ? seen[0] == -1 : is_sum(seen, n, 0), "reduce", n, where);
  fill(in, out), MPI_Reduce(rank ? in : MPI_IN_PLACE, in, n, MPI_INT, MPI_SUM, 0, comm);
  move(seen, in, sizeof seen), need(rank ? 1 : is_sum(seen, n, 0), "reduce in place", n, where);
  fill(in, out), MPI_Reduce_scatter_block(in, out, n, MPI_INT, MPI_SUM, comm);
  move(seen, out, sizeof seen);
  need(is_sum(seen, n, n * rank) && seen[n] == -1, "reduce_scatter_block", n, where);
  fill(in, out), MPI_Reduce_scatter_block(MPI_IN_PLACE, in, n, MPI_INT, MPI_SUM, comm);
  move(seen, in, sizeof seen);
  need(is_sum(seen, n, n * rank), "reduce_scatter_block in place", n, where);
}

static int is_gathered(int n, int step) {
  for (int i = 0; i < n * size * step; ++i)
    if (seen[i] != (i % step ? -1 : value(i / (n * step), i / step % n))) return 0;
  return 1;
}

static void movements(int* in, int* out, int n, int where) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  int* mine = rank == 0 ? in : out;
  fill(in, out), MPI_Bcast(mine, n, MPI_INT, 0, comm);
  move(seen, mine, sizeof seen);
  int right = 1;
  for (int i = 0; i < n; ++i) right &= seen[i] == value(0, i);
  need(right, "bcast", n, where);
  fill(in, out);
  if (rank == 0) MPI_Bcast(in, 2 * (n / 2), MPI_INT, 0, comm);
  else MPI_Bcast(out, n / 2, holes, 0, comm);
  move(seen, out, sizeof seen), right = 1;
  for (int i = 0; rank && i < 4 * (n / 2); ++i) right &= seen[i] == (i % 2 ? -1 : value(0, i / 2));
  need(right, "bcast with holes", n, where);
  fill(in, out), MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, comm);
  move(seen, out, sizeof seen), need(is_gathered(n, 1), "allgather", n, where);
  fill(in, out);
  MPI_Allgather(in, 2 * (n / 2), MPI_INT, out, n / 2, holes, comm);
  move(seen, out, sizeof seen), need(is_gathered(2 * (n / 2), 2), "allgather with holes", n, where);
  fill(in, out);
  for (int i = 0; i < n; ++i) seen[i] = value(rank, i);
  move(out + n * rank, seen, sizeof(int) * (size_t)n);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, out, n, MPI_INT, comm);
  move(seen, out, sizeof seen), need(is_gathered(n, 1), "allgather in place", n, where);
}

/* The pieces of all ranks in the opposite order, for those that have places. */
static void pieces(int* in, int* out, int n, int where) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  int counts[RANKS], places[RANKS], right = 1;
  for (int r = 0; r < size; ++r) counts[r] = n, places[r] = n * (size - 1 - r);
#define PIECES_ARE(what, when, expected)                                        \
  move(seen, out, sizeof seen), right = 1;                                      \
  for (int i = 0; (when) && i < n * size; ++i) {                                \
    const int piece = i / n, k = i % n;                                         \
    right &= seen[i] == (expected);                                             \
  }                                                                             \
  need(right, what, n, where)
#define OWN_IS(what, expected)                                                  \
  move(seen, out, sizeof seen), right = 1;                                      \
  for (int k = 0; k < n; ++k) right &= seen[k] == (expected);                   \
  need(right && seen[n] == -1, what, n, where)

  fill(in, out), MPI_Gather(in, n, MPI_INT, out, n, MPI_INT, 0, comm);
  PIECES_ARE("gather", rank == 0, value(piece, k));
  fill(in, out), MPI_Gatherv(in, n, MPI_INT, out, counts, places, MPI_INT, 0, comm);
  PIECES_ARE("gatherv", rank == 0, value(size - 1 - piece, k));
  fill(in, out), MPI_Allgatherv(in, n, MPI_INT, out, counts, places, MPI_INT, comm);
  PIECES_ARE("allgatherv", 1, value(size - 1 - piece, k));
  fill(in, out), MPI_Scatter(in, n, MPI_INT, out, n, MPI_INT, 0, comm);
  OWN_IS("scatter", value(0, n * rank + k));
  fill(in, out), MPI_Scatterv(in, counts, places, MPI_INT, out, n, MPI_INT, 0, comm);
  OWN_IS("scatterv", value(0, n * (size - 1 - rank) + k));
  fill(in, out), MPI_Alltoall(in, n, MPI_INT, out, n, MPI_INT, comm);
  PIECES_ARE("alltoall", 1, value(piece, n * rank + k));
  fill(in, out);
  MPI_Alltoallv(in, counts, places, MPI_INT, out, counts, places, MPI_INT, comm);
  PIECES_ARE("alltoallv", 1, value(size - 1 - piece, n * (size - 1 - rank) + k));
  fill(in, out), MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm);
  OWN_IS("reduce_scatter", sum(n * rank + k));
}

static void* find(void* library, const char* name) {
  void* found = dlsym(library, name);
  need(found != NULL, name, 0, 0);
  return found;
}

static void load(const char* path) {
  void* driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  need(driver != NULL, "no driver", 0, 0);
  *(void**)&device_alloc = find(driver, "feigned_alloc");
  *(void**)&take = find(driver, "feigned_take");
  *(void**)&copies = find(driver, "feigned_copies");
  *(void**)&copy = find(driver, "cuMemcpy");
  *(void**)&attributes = find(driver, "cuPointerGetAttributes");
  *(void**)&push = find(driver, "cuCtxPushCurrent_v2");
  *(void**)&pop = find(driver, "cuCtxPopCurrent_v2");
  device_in = device_alloc(sizeof seen, 0), device_out = device_alloc(sizeof seen, 0);
  managed = device_alloc(sizeof seen, 1);
}

/* The same call again and again, until its buffer is one on the device. */
static void change_place(void) {
  enum { BYTES = 1 << 16 };
  int sum = 1, one = 1, *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 6; ++i) {
    if (i == 0) *at = one;
    if (i == 4) take(at, BYTES);
    MPI_Allreduce(MPI_IN_PLACE, at, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    sum *= size;
    move(&one, at, sizeof one);
    need(one == sum, "allreduce in one place", 1, i);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
  need(argc == 2 && size <= RANKS, "usage: device PATH", 0, 0);
  MPI_Type_vector(2, 1, 2, MPI_INT, &holes);
  MPI_Type_create_resized(holes, 0, 4 * sizeof(int), &holes), MPI_Type_commit(&holes);
  for (int i = 0; i < 10; ++i) { /* before there is a driver */
    host_in[0] = i;
    MPI_Allreduce(host_in, host_out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    need(host_out[0] == i * size, "allreduce without a driver", 1, 0);
  }
  load(argv[1]);
  static const int lengths[] = {2, 500, MOST / 2};
  for (int l = 0; l < 3; ++l)
    for (int where = 0; where < 4; ++where) { /* which buffers are on the device */
      int *in = (where ^ rank) & 1 ? device_in : host_in;
      int *out = (where ^ rank) & 2 ? device_out : host_out;
      reductions(in, out, lengths[l], where), movements(in, out, lengths[l], where);
      pieces(in, out, lengths[l], where);
    }
  int before = copies();
  managed[0] = 1;
  MPI_Allreduce(managed, managed + 1, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  need(managed[1] == size && copies() == before, "managed memory is copied", 1, 0);
  change_place();
  MPI_Type_free(&holes);
  printf("rank %d: %d calls ok, %d copies\n", rank, calls, copies());
  MPI_Finalize();
  return 0;
}
