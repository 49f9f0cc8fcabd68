/* Calls that MPI may refuse by their arguments alone, made on all ranks; the arguments name them
   (none: all). Every rank prints "rank r: CASE CLASS handled N" with the error class that it got
   (0: none). After each case the communicator must still serve a right call: what is refused has
   sent nothing. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 6, MOST = 8 };

static int rank, size;
static int in[COUNT * MOST], out[COUNT * MOST];
static MPI_Comm comm;
static MPI_Datatype raw, vector; /* of two ints: not committed, and committed */
static int handled;              /* calls of the communicator's error handler */

static void handler(MPI_Comm* of, int* code, ...) { (void)of, (void)code, ++handled; }

static void need(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* At the root; away from it another value. */
#define AT_ROOT(value, other) (rank == 0 ? (value) : (other))
#define AWAY(value, other) (rank == 0 ? (other) : (value))
#define OWN (out + rank * COUNT)

#define ALLREDUCE(name, in, out, n, type, op) \
  static int name(void) { return MPI_Allreduce(in, out, n, type, op, comm); }
#define REDUCE(name, in, out, n, type, op, root) \
  static int name(void) { return MPI_Reduce(in, out, n, type, op, root, comm); }
#define BLOCK(name, in, out, n, type, op) \
  static int name(void) { return MPI_Reduce_scatter_block(in, out, n, type, op, comm); }
#define ALLGATHER(name, in, n, type, out, m, into) \
  static int name(void) { return MPI_Allgather(in, n, type, out, m, into, comm); }
#define BCAST(name, buffer, n, type, root) \
  static int name(void) { return MPI_Bcast(buffer, n, type, root, comm); }
#define ANY(name, call) \
  static int name(void) { return call; }

static int counts[MOST], places[MOST], negative[MOST]; /* one piece after the other */
static int zeros[MOST];

ALLREDUCE(allreduce_aliased, out, out, COUNT, MPI_INT, MPI_SUM)
ALLREDUCE(allreduce_aliased_empty, out, out, 0, MPI_INT, MPI_SUM)
ALLREDUCE(allreduce_no_input, NULL, out, COUNT, MPI_INT, MPI_SUM)
ALLREDUCE(allreduce_no_output, in, NULL, COUNT, MPI_INT, MPI_SUM)
ALLREDUCE(allreduce_into_in_place, in, MPI_IN_PLACE, COUNT, MPI_INT, MPI_SUM)
ALLREDUCE(allreduce_negative, in, out, -1, MPI_INT, MPI_SUM)
ALLREDUCE(allreduce_no_type, in, out, COUNT, MPI_DATATYPE_NULL, MPI_SUM)
ALLREDUCE(allreduce_no_op, in, out, COUNT, MPI_INT, MPI_OP_NULL)
ALLREDUCE(allreduce_bits_of_floats, in, out, COUNT, MPI_FLOAT, MPI_BAND)
REDUCE(reduce_aliased, in, AT_ROOT(in, out), COUNT, MPI_INT, MPI_SUM, 0)
REDUCE(reduce_aliased_away, AWAY(out, in), out, COUNT, MPI_INT, MPI_SUM, 0)
REDUCE(reduce_no_input, NULL, out, COUNT, MPI_INT, MPI_SUM, 0)
REDUCE(reduce_no_output, in, NULL, COUNT, MPI_INT, MPI_SUM, 0)
REDUCE(reduce_into_in_place, in, MPI_IN_PLACE, COUNT, MPI_INT, MPI_SUM, 0)
REDUCE(reduce_in_place_away, MPI_IN_PLACE, out, COUNT, MPI_INT, MPI_SUM, 0)
REDUCE(reduce_no_such_root, in, out, COUNT, MPI_INT, MPI_SUM, size)
BLOCK(block_aliased, out, out, COUNT, MPI_INT, MPI_SUM)
BLOCK(block_no_input, NULL, out, COUNT, MPI_INT, MPI_SUM)
BLOCK(block_no_output, in, NULL, COUNT, MPI_INT, MPI_SUM)
BLOCK(block_into_in_place, in, MPI_IN_PLACE, COUNT, MPI_INT, MPI_SUM)
ALLGATHER(allgather_aliased, OWN, COUNT, MPI_INT, out, COUNT, MPI_INT)
ALLGATHER(allgather_aliased_empty, OWN, 0, MPI_INT, out, 0, MPI_INT)
ALLGATHER(allgather_aliased_other_type, OWN, COUNT / 2, vector, out, COUNT, MPI_INT)
ALLGATHER(allgather_no_input, NULL, COUNT, MPI_INT, out, COUNT, MPI_INT)
ALLGATHER(allgather_no_output, in, COUNT, MPI_INT, NULL, COUNT, MPI_INT)
ALLGATHER(allgather_into_in_place, in, COUNT, MPI_INT, MPI_IN_PLACE, COUNT, MPI_INT)
ALLGATHER(allgather_from_raw, in, COUNT / 2, raw, out, COUNT, MPI_INT)
ALLGATHER(allgather_into_raw, in, COUNT, MPI_INT, out, COUNT / 2, raw)
ALLGATHER(allgather_negative, in, COUNT, MPI_INT, out, -1, MPI_INT)
BCAST(bcast_nothing, NULL, COUNT, MPI_INT, 0)
BCAST(bcast_in_place, MPI_IN_PLACE, COUNT, MPI_INT, 0)
BCAST(bcast_raw, out, COUNT / 2, raw, 0)
BCAST(bcast_vector, out, COUNT / 2, vector, 0)
BCAST(bcast_nothing_of_vectors, NULL, COUNT / 2, vector, 0)
BCAST(bcast_no_type, out, COUNT, MPI_DATATYPE_NULL, 0)
BCAST(bcast_no_such_root, out, COUNT, MPI_INT, -7)

ANY(scattered_into_in_place, MPI_Reduce_scatter(in, MPI_IN_PLACE, counts, MPI_INT, MPI_SUM, comm))
ANY(scattered_negative, MPI_Reduce_scatter(in, out, negative, MPI_INT, MPI_SUM, comm))
ANY(allgatherv_into_in_place,
    MPI_Allgatherv(in, COUNT, MPI_INT, MPI_IN_PLACE, counts, places, MPI_INT, comm))
ANY(allgatherv_negative, MPI_Allgatherv(in, COUNT, MPI_INT, out, negative, places, MPI_INT, comm))
ANY(gather_aliased, MPI_Gather(OWN, COUNT, MPI_INT, out, COUNT, MPI_INT, 0, comm))
ANY(gather_raw, MPI_Gather(in, COUNT / 2, raw, out, COUNT, MPI_INT, 0, comm))
ANY(gather_no_such_root, MPI_Gather(in, COUNT, MPI_INT, out, COUNT, MPI_INT, size, comm))
ANY(gatherv_raw, MPI_Gatherv(in, COUNT / 2, raw, out, counts, places, MPI_INT, 0, comm))
ANY(gatherv_of_nothing, MPI_Gatherv(out, 0, MPI_INT, out, zeros, places, MPI_INT, 0, comm))
ANY(scatter_raw, MPI_Scatter(in, COUNT, MPI_INT, out, COUNT / 2, raw, 0, comm))
ANY(scatter_no_such_root, MPI_Scatter(in, COUNT, MPI_INT, out, COUNT, MPI_INT, size, comm))
ANY(scatterv_raw, MPI_Scatterv(in, counts, places, MPI_INT, out, COUNT / 2, raw, 0, comm))
ANY(alltoall_aliased, MPI_Alltoall(out, COUNT, MPI_INT, out, COUNT, MPI_INT, comm))
ANY(alltoall_into_in_place, MPI_Alltoall(in, COUNT, MPI_INT, MPI_IN_PLACE, COUNT, MPI_INT, comm))
ANY(alltoallv_into_in_place,
    MPI_Alltoallv(in, counts, places, MPI_INT, MPI_IN_PLACE, counts, places, MPI_INT, comm))
ANY(alltoallv_negative,
    MPI_Alltoallv(in, counts, places, MPI_INT, out, negative, places, MPI_INT, comm))

#define CASE(name) {#name, name}
static const struct {
  const char* name;
  int (*make)(void);
} cases[] = {
    CASE(allreduce_aliased), CASE(allreduce_aliased_empty), CASE(allreduce_no_input),
    CASE(allreduce_no_output), CASE(allreduce_into_in_place), CASE(allreduce_negative),
    CASE(allreduce_no_type), CASE(allreduce_no_op), CASE(allreduce_bits_of_floats),
    CASE(reduce_aliased), CASE(reduce_aliased_away), CASE(reduce_no_input),
    CASE(reduce_no_output), CASE(reduce_into_in_place), CASE(reduce_in_place_away),
    CASE(reduce_no_such_root), CASE(block_aliased), CASE(block_no_input), CASE(block_no_output),
    CASE(block_into_in_place), CASE(allgather_aliased), CASE(allgather_aliased_empty),
    CASE(allgather_aliased_other_type), CASE(allgather_no_input), CASE(allgather_no_output),
    CASE(allgather_into_in_place), CASE(allgather_from_raw), CASE(allgather_into_raw),
    CASE(allgather_negative), CASE(bcast_nothing), CASE(bcast_in_place), CASE(bcast_raw),
    CASE(bcast_vector), CASE(bcast_nothing_of_vectors), CASE(bcast_no_type),
    CASE(bcast_no_such_root), CASE(scattered_into_in_place), CASE(scattered_negative),
    CASE(allgatherv_into_in_place), CASE(allgatherv_negative), CASE(gather_aliased),
    CASE(gather_raw), CASE(gather_no_such_root), CASE(gatherv_raw), CASE(scatter_raw),
    CASE(gatherv_of_nothing),
    CASE(scatter_no_such_root), CASE(scatterv_raw), CASE(alltoall_aliased),
    CASE(alltoall_into_in_place), CASE(alltoallv_into_in_place), CASE(alltoallv_negative),
};

/* A rank that is refused has not taken part. Where another one is not, such as the others of an
   MPI_Reduce whose root is, that one waits for it: it makes the right call instead. */
static void make_up(const char* name) {
  static const char* const alone[] = {"reduce_aliased", "reduce_no_output", "reduce_into_in_place",
                                      "reduce_in_place_away"};
  for (size_t i = 0; i < sizeof alone / sizeof *alone; ++i)
    if (strcmp(name, alone[i]) == 0) MPI_Reduce(in, out, COUNT, MPI_INT, MPI_SUM, 0, comm);
  if (strcmp(name, "gather_aliased") == 0)
    MPI_Gather(in, COUNT, MPI_INT, out, COUNT, MPI_INT, 0, comm);
}

static void is_usable(const char* after) {
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  need(sum == size, after);
}

static int is_named(int argc, char** argv, const char* name) {
  for (int i = 1; i < argc; ++i)
    if (strcmp(argv[i], name) == 0) return 1;
  return 0;
}

int main(int argc, char** argv) {
  MPI_Errhandler own;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
  need(size <= MOST, "too many ranks");
  MPI_Type_vector(2, 1, 1, MPI_INT, &raw);
  MPI_Type_vector(2, 1, 1, MPI_INT, &vector), MPI_Type_commit(&vector);
  for (int r = 0; r < size; ++r) counts[r] = COUNT, places[r] = r * COUNT, negative[r] = -1;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(handler, &own), MPI_Comm_set_errhandler(comm, own);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, own); /* what Open MPI calls for a wrong buffer */
  for (int call = 0; call < 3; ++call) /* the host makes two */
    is_usable("not usable at the beginning");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    int class = 0;
    if (argc > 1 && !is_named(argc, argv, cases[i].name)) continue;
    handled = 0;
    const int code = cases[i].make();
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    if (code != MPI_SUCCESS || handled) make_up(cases[i].name); /* MPICH: success when handled */
    printf("rank %d: %s %d handled %d\n", rank, cases[i].name, class, handled);
    fflush(stdout);
    is_usable(cases[i].name);
  }
  MPI_Errhandler_free(&own);
  MPI_Type_free(&raw), MPI_Type_free(&vector);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
