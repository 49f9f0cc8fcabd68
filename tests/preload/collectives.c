/* Every call that the drop-in library serves: reductions held against sums made here, data that
   move against the host's own call, PMPI_; all buffers compared to the byte. Data differ for every
   rank and index. Hosts are no reference for sums: Open MPI 4.1 stops at 32767 in sums of short,
   MPICH 4.0 compares unsigned char as signed, and crashes in an MPI_Reduce in place of 1031 float.

   Prints "rank r of p: n calls compared" and returns 0, or says what differs. */
#include "elements.h"

#include <stdio.h>

enum { MOST = 1031, EDGE = 16 };

static int me, compared, wrong;
static MPI_Comm comm;

/* --- the two sides ---------------------------------------------------------------------------- */

/* Input and output of one call, twice; with an edge around them that nobody may touch. */
static unsigned char *in[2], *out[2];
static size_t room;

static void take_buffers(void) {
  room = (size_t)MOST * 16 * (size_t)all + 2 * EDGE;
  for (int side = 0; side < 2; ++side) in[side] = malloc(room), out[side] = malloc(room);
}

static void prepare(const Element* e, size_t in_count, size_t out_count) {
  ++seed;
  memset(in[0], 0xa5, room), memset(out[0], 0x5a, room);
  fill(in[0] + EDGE, in_count, e, me);
  fill(out[0] + EDGE, out_count, e, me); /* what in place begins with */
  memcpy(in[1], in[0], room), memcpy(out[1], out[0], room);
}

/* `rest`: from here on the output may be anything, up to `end`. */
static void compare(const char* what, const char* type, const char* how, long n, size_t rest,
                    size_t end) {
  ++compared;
  for (int side = 0; end > rest && side < 2; ++side) memset(out[side] + EDGE + rest, 0, end - rest);
  if (memcmp(in[0], in[1], room) == 0 && memcmp(out[0], out[1], room) == 0) return;
  static const char* told[32];
  for (int i = 0; i < wrong && i < 32; ++i)
    if (strcmp(told[i], what) == 0) return; /* each call once */
  if (wrong < 32) told[wrong] = what;
  ++wrong;
  fprintf(stderr, "rank %d of %d: %s of %ld %s, %s: is wrong\n", me, all, what, n,
          type, how);
}

static void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  fprintf(stderr, "rank %d: %s returned %d\n", me, what, code);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

/* --- calls ------------------------------------------------------------------------------------ */

static void reductions(const Element* e, const Operation* ops, int o, int n, int root,
                       int in_place) {
  const size_t one = (size_t)n * e->bytes;
  const MPI_Op op = ops[o].op;
  char how[64];
  snprintf(how, sizeof how, "%s%s, root %d", ops[o].name, in_place ? ", in place" : "", root);
  void* input = in_place ? MPI_IN_PLACE : in[0] + EDGE;

  prepare(e, (size_t)n, (size_t)n);
  check(MPI_Allreduce(input, out[0] + EDGE, n, e->type, op, comm), "MPI_Allreduce");
  combine(out[1] + EDGE, e, o, 0, (size_t)n);
  compare("allreduce", e->name, how, n, 0, 0);

  prepare(e, (size_t)n, (size_t)n);
  check(MPI_Reduce(me == root ? input : in[0] + EDGE, me == root ? out[0] + EDGE : NULL, n, e->type,
                   op, root, comm), "MPI_Reduce");
  if (me == root) combine(out[1] + EDGE, e, o, 0, (size_t)n);
  compare("reduce", e->name, how, n, 0, 0);

  prepare(e, (size_t)n * (size_t)all, (size_t)n * (size_t)all);
  check(MPI_Reduce_scatter_block(input, out[0] + EDGE, n, e->type, op, comm),
        "MPI_Reduce_scatter_block");
  combine(out[1] + EDGE, e, o, (size_t)n * (size_t)me, (size_t)n);
  compare("reduce_scatter_block", e->name, how, n, one, in_place ? one * (size_t)all : 0);
}

/* Uneven pieces, some of them empty, in the opposite order and with gaps between them. */
static int counts_of[64], places_of[64], sum_of_counts;

static void unevenly(int n, int is_transposed) {
  int at = 0;
  sum_of_counts = 0;
  for (int r = all - 1; r >= 0; --r) {
    const int from = is_transposed ? r : me, to = is_transposed ? me : r;
    counts_of[r] = n == 0 || (from + 2 * to + n) % 4 == 3 ? 0 : 1 + (from * 5 + to * 3 + n) % n;
    places_of[r] = at;
    at += counts_of[r] + 1;
    sum_of_counts += counts_of[r];
  }
}

/* What rank r has, whoever asks. */
static void unevenly_by_rank(int n) {
  const int mine = me;
  me = 1;
  unevenly(n, 0);
  me = mine;
}

static void uneven_reductions(const Element* e, const Operation* ops, int o, int n, int in_place) {
  unevenly_by_rank(n);
  size_t first = 0;
  for (int r = 0; r < me; ++r) first += (size_t)counts_of[r];
  prepare(e, (size_t)sum_of_counts, (size_t)sum_of_counts);
  check(MPI_Reduce_scatter(in_place ? MPI_IN_PLACE : in[0] + EDGE, out[0] + EDGE, counts_of,
                           e->type, ops[o].op, comm), "MPI_Reduce_scatter");
  combine(out[1] + EDGE, e, o, first, (size_t)counts_of[me]);
  compare("reduce_scatter", e->name, ops[o].name, n, (size_t)counts_of[me] * e->bytes,
          in_place ? (size_t)sum_of_counts * e->bytes : 0);
}

/* --- each call of both sides ------------------------------------------------------------------ */

#define BOTH(name, ...)                                                \
  for (int side = 0; side < 2; ++side) {                               \
    unsigned char *from = in[side] + EDGE, *to = out[side] + EDGE;     \
    (void)from, (void)to;                                              \
    check((side ? PMPI_##name : MPI_##name)(__VA_ARGS__), #name);      \
  }

static void pieces(const Element* e, int n, int root, int in_place) {
  const size_t whole = (size_t)n * (size_t)all, room_for = whole + (size_t)(2 * all);
  const int at_root = me == root, here = in_place && at_root;
  const MPI_Datatype type = e->type;
  char how[64];
  snprintf(how, sizeof how, "root %d%s", root, in_place ? ", in place" : "");

  prepare(e, (size_t)n, whole);
  BOTH(Gather, here ? MPI_IN_PLACE : from, n, type, at_root ? to : NULL, n, type, root, comm)
  compare("gather", e->name, how, n, 0, 0);
  prepare(e, whole, (size_t)n);
  BOTH(Scatter, at_root ? from : NULL, n, type, here ? MPI_IN_PLACE : to, n, type, root, comm)
  compare("scatter", e->name, how, n, 0, 0);
  prepare(e, whole, whole);
  BOTH(Alltoall, in_place ? MPI_IN_PLACE : from, n, type, to, n, type, comm)
  compare("alltoall", e->name, how, n, 0, 0);

  unevenly_by_rank(n);
  const int mine = counts_of[me];
  prepare(e, (size_t)n, room_for);
  BOTH(Allgatherv, in_place ? MPI_IN_PLACE : from, mine, type, to, counts_of, places_of, type, comm)
  compare("allgatherv", e->name, how, n, 0, 0);
  prepare(e, (size_t)n, room_for);
  BOTH(Gatherv, here ? MPI_IN_PLACE : from, mine, type, to, counts_of, places_of, type, root, comm)
  compare("gatherv", e->name, how, n, 0, 0);
  prepare(e, room_for, (size_t)n);
  BOTH(Scatterv, from, counts_of, places_of, type, here ? MPI_IN_PLACE : to, mine, type, root, comm)
  compare("scatterv", e->name, how, n, 0, 0);
}

static void uneven_alltoall(const Element* e, int n, int in_place) {
  int sent[64], sent_at[64];
  const size_t room_for = (size_t)(n + 2) * (size_t)all;
  unevenly(n, 0);
  memcpy(sent, counts_of, sizeof sent), memcpy(sent_at, places_of, sizeof sent_at);
  unevenly(n, 1);
  if (in_place) /* each pair sends as much as it receives */
    for (int r = 0; r < all; ++r)
      counts_of[r] = n ? (me * r + me + r) % n : 0, places_of[r] = r * n;
  prepare(e, room_for, room_for);
  BOTH(Alltoallv, in_place ? MPI_IN_PLACE : from, sent, sent_at, e->type, to, counts_of, places_of,
       e->type, comm)
  compare("alltoallv", e->name, in_place ? "in place" : "", n, 0, 0);
}

static void movements(const Element* e, int n, int root, int in_place) {
  pieces(e, n, root, in_place);
  uneven_alltoall(e, n, in_place);
  char how[64];
  snprintf(how, sizeof how, "root %d%s", root, in_place ? ", in place" : "");
  prepare(e, 0, (size_t)n);
  check(MPI_Bcast(out[0] + EDGE, n, e->type, root, comm), "MPI_Bcast");
  check(PMPI_Bcast(out[1] + EDGE, n, e->type, root, comm), "PMPI_Bcast");
  compare("bcast", e->name, how, n, 0, 0);

  prepare(e, (size_t)n, (size_t)n * (size_t)all);
  for (int side = 0; side < 2; ++side) {
    void* input = in_place ? MPI_IN_PLACE : in[side] + EDGE;
    int (*call)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm) =
        side ? PMPI_Allgather : MPI_Allgather;
    check(call(input, n, e->type, out[side] + EDGE, n, e->type, comm), "Allgather");
  }
  compare("allgather", e->name, how, n, 0, 0);
}

/* Rank r describes the same 6 n ints in its own way; what does not move keeps its place. */
static MPI_Datatype shape(int r, int n, int* count) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  const int lengths[] = {4, 2}, places[] = {5, 0}; /* in another order than memory */
  switch (r % 4) {
    case 0: *count = 6 * n; return MPI_INT;
    case 1: *count = n, MPI_Type_vector(3, 2, 3, MPI_INT, &type); break;
    case 2: *count = n, MPI_Type_indexed(2, lengths, places, MPI_INT, &type); break;
    default: *count = 6 * n, MPI_Type_create_resized(MPI_INT, 0, 8, &type);
  }
  MPI_Type_commit(&type);
  return type;
}

/* What a rank sends and receives with those datatypes; a multiple of the ints that are meant. */
static void derived_pieces(int n, int root, int count, MPI_Datatype type, int into_count,
                           MPI_Datatype into) {
  const size_t ints = (size_t)n * 12 * (size_t)all;
  const int at_root = me == root;
  int sent[64], sent_at[64], received[64], received_at[64];
  for (int r = 0; r < all; ++r) { /* each other piece is empty, and the last one comes first */
    sent[r] = (me + r) % 2 ? count : 0, sent_at[r] = (all - 1 - r) * count;
    received[r] = (me + r) % 2 ? into_count : 0, received_at[r] = (all - 1 - r) * into_count;
  }
  prepare(&elements[6], ints, ints);
  BOTH(Gather, from, count, type, at_root ? to : NULL, into_count, into, root, comm)
  compare("gather", "derived", "", n, 0, 0);
  prepare(&elements[6], ints, ints);
  BOTH(Scatter, at_root ? from : NULL, count, type, to, into_count, into, root, comm)
  compare("scatter", "derived", "", n, 0, 0);
  prepare(&elements[6], ints, ints);
  BOTH(Alltoall, from, count, type, to, into_count, into, comm)
  compare("alltoall", "derived", "", n, 0, 0);
  prepare(&elements[6], ints, ints);
  BOTH(Alltoallv, from, sent, sent_at, type, to, received, received_at, into, comm)
  compare("alltoallv", "derived", "", n, 0, 0);
}

static void derived(int n, int root, int turn) {
  const Element* e = &elements[6]; /* int */
  const size_t ints = (size_t)n * 12 * (size_t)all;
  int count, into_count;
  MPI_Datatype type = shape(me + turn, n, &count), into = shape(me + turn + 1, n, &into_count);
  prepare(e, ints, ints);
  check(MPI_Bcast(out[0] + EDGE, count, type, root, comm), "MPI_Bcast");
  check(PMPI_Bcast(out[1] + EDGE, count, type, root, comm), "PMPI_Bcast");
  compare("bcast", "derived", "", n, 0, 0);
  for (int in_place = 0; in_place < 2; ++in_place) {
    prepare(e, ints, ints);
    for (int side = 0; side < 2; ++side) {
      int (*call)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm) =
          side ? PMPI_Allgather : MPI_Allgather;
      check(call(in_place ? MPI_IN_PLACE : in[side] + EDGE, count, type, out[side] + EDGE,
                 into_count, into, comm), "Allgather");
    }
    compare("allgather", "derived", in_place ? "in place" : "", n, 0, 0);
  }
  derived_pieces(n, root, count, type, into_count, into);
  if (type != MPI_INT) MPI_Type_free(&type);
  if (into != MPI_INT) MPI_Type_free(&into);
}

/* What is not served must work as before. */
static void compose(void* a, void* b, int* n, MPI_Datatype* type) {
  /* Pairs (m, t) are maps x -> m x + t: their order counts, as it does in no sum. */
  (void)type;
  for (int i = 0; i < *n; ++i) {
    const unsigned* const outer = (const unsigned*)a + 2 * i;
    unsigned* const inner = (unsigned*)b + 2 * i;
    inner[1] = outer[0] * inner[1] + outer[1], inner[0] *= outer[0];
  }
}

static void others(void) {
  MPI_Op own;
  MPI_Op_create(compose, 0, &own);
  prepare(&elements[6], 10, 10);
  MPI_Allreduce(in[0] + EDGE, out[0] + EDGE, 5, MPI_2INT, own, comm);
  PMPI_Allreduce(in[1] + EDGE, out[1] + EDGE, 5, MPI_2INT, own, comm);
  compare("allreduce", "2int", "an operation of its own", 5, 0, 0);
  MPI_Op_free(&own);
  prepare(&elements[6], 10, 10);
  MPI_Allreduce(in[0] + EDGE, out[0] + EDGE, 5, MPI_2INT, MPI_MAXLOC, comm);
  PMPI_Allreduce(in[1] + EDGE, out[1] + EDGE, 5, MPI_2INT, MPI_MAXLOC, comm);
  compare("allreduce", "2int", "maxloc", 5, 0, 0);
  /* An address with the type: the buffer is MPI_BOTTOM. */
  for (int side = 0; side < 2; ++side) {
    MPI_Aint place;
    MPI_Datatype absolute;
    const int seven = 7;
    if (side == 0) prepare(&elements[6], 0, 7);
    MPI_Get_address(out[side] + EDGE, &place);
    MPI_Type_create_hindexed(1, &seven, &place, MPI_INT, &absolute);
    MPI_Type_commit(&absolute);
    (side ? PMPI_Bcast : MPI_Bcast)(MPI_BOTTOM, 1, absolute, all - 1, comm);
    MPI_Type_free(&absolute);
  }
  compare("bcast", "int", "MPI_BOTTOM", 7, 0, 0);
  MPI_Bcast(NULL, 0, MPI_INT, 0, comm);
  MPI_Barrier(comm);
}

/* Each call three times, then with one argument changed: the library knows a repeated call by its
   arguments, and its buffers by their addresses alone. */
static void repeats(const Operation* ops) {
  const struct {
    int type, op, n, root, in_place;
  } cases[] = {{6, 0, 7, 0, 0}, {6, 0, 5, 0, 0}, {6, 0, 7, all - 1, 0}, {6, 0, 7, 0, 1},
               {6, 3, 7, 0, 0}, {0, 0, 7, 0, 0}, {6, 0, 7, 0, 0}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c)
    for (int turn = 0; turn < 3; ++turn) {
      const Element* e = &elements[cases[c].type];
      const int n = cases[c].n, root = cases[c].root, in_place = cases[c].in_place;
      movements(e, n, root, in_place);
      reductions(e, ops, cases[c].op, n, root, in_place);
      uneven_reductions(e, ops, cases[c].op, n, in_place);
      MPI_Barrier(comm);
    }
}

/* All of it, or a small part, on one communicator. */
static void run(MPI_Comm on, int thorough) {
  Operation ops[16];
  const int op_count = list_operations(ops), counts[] = {0, 1, 7, MOST};
  comm = on;
  MPI_Comm_rank(comm, &me), MPI_Comm_size(comm, &all);
  take_buffers();
  for (int t = 0; t < element_count; ++t)
    for (int c = 0; c < 4; ++c)
      for (int in_place = 0; in_place < 2; ++in_place) {
        const int n = counts[c], root = (t + c) % all;
        if (!thorough && (c != 2 || t % 5)) continue;
        movements(&elements[t], n, root, in_place);
        for (int o = 0; o < op_count; ++o)
          if (strchr(ops[o].kinds, elements[t].kind) && (c != 3 || (t + o) % 4 == 0))
            reductions(&elements[t], ops, o, n, (root + o) % all, in_place),
                uneven_reductions(&elements[t], ops, o, n, in_place);
      }
  repeats(ops);
  for (int turn = 0; turn < 4; ++turn) derived(thorough ? 23 : 3, turn % all, turn);
  others();
  for (int side = 0; side < 2; ++side) free(in[side]), free(out[side]);
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Comm part;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
  list_elements();
  /* A part first: there is no world yet that it could belong to. */
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
  run(part, 0);
  MPI_Comm_free(&part);
  run(MPI_COMM_WORLD, argc == 1); /* with an argument: less */
  MPI_Comm_dup(MPI_COMM_WORLD, &part), run(part, 0), MPI_Comm_free(&part);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &part), run(part, 0), MPI_Comm_free(&part);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part), run(part, 0), MPI_Comm_free(&part);
  run(MPI_COMM_SELF, 0);
  printf("rank %d of %d: %d calls compared\n", rank, size, compared);
  MPI_Finalize();
  return wrong ? 1 : 0;
}
