/* Every call that the drop-in library serves: reductions held against sums made here, data that
   move against the host's own call, PMPI_; all buffers compared to the byte. Data differ for every
   rank and index. Hosts are no reference for sums: Open MPI 4.1 stops at 32767 in sums of short,
   MPICH 4.0 compares unsigned char as signed, and crashes in an MPI_Reduce in place of 1031 float.

   Prints "rank r of p: n calls compared" and returns 0, or says what differs. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1031, EDGE = 16 };

static int me, all, compared, wrong, seed;
static MPI_Comm comm;

/* --- data ------------------------------------------------------------------------------------- */

typedef struct {
  const char* name;
  MPI_Datatype type;
  size_t bytes;
  int kind; /* 'i', 'u': integers, 'j': not for logic, 'f': floats, 'B': bytes, 'b': bool */
} Element;

static Element elements[32];
static int element_count;

static void element(const char* name, MPI_Datatype type, size_t bytes, int kind) {
  const Element one = {name, type, bytes, kind};
  int size = 0;
  if (type == MPI_DATATYPE_NULL) return;
  MPI_Type_size(type, &size);
  if ((size_t)size == bytes) elements[element_count++] = one; /* else there is no Fortran */
}

static void list_elements(void) {
  element("float", MPI_FLOAT, 4, 'f'), element("double", MPI_DOUBLE, 8, 'f');
  element("schar", MPI_SIGNED_CHAR, 1, 'i'), element("uchar", MPI_UNSIGNED_CHAR, 1, 'u');
  element("short", MPI_SHORT, 2, 'i'), element("ushort", MPI_UNSIGNED_SHORT, 2, 'u');
  element("int", MPI_INT, 4, 'i'), element("unsigned", MPI_UNSIGNED, 4, 'u');
  element("long", MPI_LONG, sizeof(long), 'i');
  element("ulong", MPI_UNSIGNED_LONG, sizeof(long), 'u');
  element("llong", MPI_LONG_LONG, 8, 'i'), element("ullong", MPI_UNSIGNED_LONG_LONG, 8, 'u');
  element("int8", MPI_INT8_T, 1, 'i'), element("uint8", MPI_UINT8_T, 1, 'u');
  element("int16", MPI_INT16_T, 2, 'i'), element("uint16", MPI_UINT16_T, 2, 'u');
  element("int32", MPI_INT32_T, 4, 'i'), element("uint32", MPI_UINT32_T, 4, 'u');
  element("int64", MPI_INT64_T, 8, 'i'), element("uint64", MPI_UINT64_T, 8, 'u');
  element("aint", MPI_AINT, sizeof(MPI_Aint), 'j');
  element("byte", MPI_BYTE, 1, 'B'), element("bool", MPI_C_BOOL, 1, 'b');
  element("integer", MPI_INTEGER, 4, 'j'), element("real", MPI_REAL, 4, 'f');
  element("double precision", MPI_DOUBLE_PRECISION, 8, 'f');
}

typedef struct {
  const char* name;
  MPI_Op op;
  const char* kinds;
} Operation;

static int list_operations(Operation* ops) {
  const Operation list[] = {
      {"sum", MPI_SUM, "fiuj"},   {"prod", MPI_PROD, "fiuj"},  {"min", MPI_MIN, "fiuj"},
      {"max", MPI_MAX, "fiuj"},   {"land", MPI_LAND, "iub"},   {"lor", MPI_LOR, "iub"},
      {"lxor", MPI_LXOR, "iub"},  {"band", MPI_BAND, "iujB"},  {"bor", MPI_BOR, "iujB"},
      {"bxor", MPI_BXOR, "iujB"},
  };
  memcpy(ops, list, sizeof list);
  return (int)(sizeof list / sizeof *list);
}

static uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u, x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 27);
}

/* Floats are small whole numbers, so that sums and products of few are exact in any order. */
static void fill(unsigned char* to, size_t count, const Element* e, int rank) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t x = mixed(((uint64_t)rank << 32 | i) + ((uint64_t)seed << 48));
    const double whole = 1 + (double)(x % 9);
    const float small = (float)whole;
    const uint64_t thin = x % 5 ? x : 0; /* some zeros, for the logical operations */
    const unsigned char truth = x & 1;
    const void* from = e->kind == 'b' ? (const void*)&truth : (const void*)&thin;
    if (e->kind == 'f') from = e->bytes == 8 ? (const void*)&whole : (const void*)&small;
    memcpy(to + i * e->bytes, from, e->bytes);
  }
}

/* One element as a number, and back. */
static double whole_of(const unsigned char* from, const Element* e) {
  float small;
  double whole;
  memcpy(&small, from, 4), memcpy(&whole, from, e->bytes == 8 ? 8 : 4);
  return e->bytes == 8 ? whole : (double)small;
}

static uint64_t bits_of(const unsigned char* from, const Element* e) {
  uint64_t bits = 0;
  memcpy(&bits, from, e->bytes);
  const int above = 64 - 8 * (int)e->bytes;
  const int has_sign = e->kind == 'i' || e->kind == 'j';
  return has_sign ? (uint64_t)((int64_t)(bits << above) >> above) : bits;
}

static double sum_of_floats(int o, double a, double b) {
  return o == 0 ? a + b : o == 1 ? a * b : o == 2 ? (a < b ? a : b) : (a > b ? a : b);
}

static uint64_t sum_of_bits(int o, uint64_t a, uint64_t b, const Element* e) {
  const int has_sign = e->kind == 'i' || e->kind == 'j';
  const int less = has_sign ? (int64_t)a < (int64_t)b : a < b;
  const uint64_t all_of_them[] = {a + b,  a * b,    less ? a : b, less ? b : a, a && b,
                                  a || b, !a != !b, a & b,        a | b,        a ^ b};
  return all_of_them[o];
}

/* What operation `o` makes of elements first .. first + n - 1 of all ranks. */
static void combine(unsigned char* to, const Element* e, int o, size_t first, size_t n) {
  const size_t length = (first + n) * e->bytes;
  unsigned char* row = malloc(length + 8);
  for (int r = 0; r < all; ++r) {
    fill(row, first + n, e, r);
    for (size_t i = 0; i < n; ++i) {
      const unsigned char* from = row + (first + i) * e->bytes;
      unsigned char* into = to + i * e->bytes;
      if (r == 0) {
        memcpy(into, from, e->bytes);
      } else if (e->kind == 'f') {
        const double whole = sum_of_floats(o, whole_of(into, e), whole_of(from, e));
        const float small = (float)whole;
        memcpy(into, e->bytes == 8 ? (const void*)&whole : (const void*)&small, e->bytes);
      } else {
        const uint64_t bits = sum_of_bits(o, bits_of(into, e), bits_of(from, e), e);
        memcpy(into, &bits, e->bytes);
      }
    }
  }
  free(row);
}

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
  static const char* told[8];
  for (int i = 0; i < wrong && i < 8; ++i)
    if (strcmp(told[i], what) == 0) return; /* each call once */
  if (wrong < 8) told[wrong] = what;
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

static void movements(const Element* e, int n, int root, int in_place) {
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
  if (type != MPI_INT) MPI_Type_free(&type);
  if (into != MPI_INT) MPI_Type_free(&into);
}

/* What is not served must work as before. */
static void add_pairs(void* a, void* b, int* n, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *n; ++i) ((int*)b)[i] = 3 * ((int*)a)[i] + ((int*)b)[i];
}

static void others(void) {
  MPI_Op own;
  MPI_Op_create(add_pairs, 1, &own);
  prepare(&elements[6], 10, 10);
  MPI_Allreduce(in[0] + EDGE, out[0] + EDGE, 10, MPI_INT, own, comm);
  PMPI_Allreduce(in[1] + EDGE, out[1] + EDGE, 10, MPI_INT, own, comm);
  compare("allreduce", "int", "an operation of its own", 10, 0, 0);
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
            reductions(&elements[t], ops, o, n, (root + o) % all, in_place);
      }
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
