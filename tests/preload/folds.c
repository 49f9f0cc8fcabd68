/* Reductions by operations that the host alone has: a user's own, of pairs, of complex numbers, of
   long doubles, and of elements with gaps. Each is compared with the host's own call, PMPI_; a
   reduce with its allreduce, since MPICH 4.0 crashes in an MPI_Reduce in place.

   Prints "rank r of p: n folds compared" and returns 0, or says what differs. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 5000, ROOM = MOST * 16 * 8 };

static int rank, ranks, compared, wrong;
static unsigned char *in, *out[2];

/* Maps x -> m x + t as pairs (m, t), `apart` words from one to the other: their order counts. */
static void compose(const unsigned* outer, unsigned* inner, int apart) {
  inner[apart] = outer[0] * inner[apart] + outer[apart], inner[0] *= outer[0];
}

static void compose_pairs(void* a, void* b, int* n, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *n; ++i) compose((unsigned*)a + 2 * i, (unsigned*)b + 2 * i, 1);
}

static void compose_apart(void* a, void* b, int* n, MPI_Datatype* type) {
  (void)type; /* a word lies between the two, and one after them */
  for (int i = 0; i < *n; ++i) compose((unsigned*)a + 4 * i, (unsigned*)b + 4 * i, 2);
}

typedef struct {
  const char* name;
  MPI_Datatype type;
  MPI_Op op;
  size_t extent;
  char kind; /* 'w': words, 'g': with gaps, 'd': double and int, 'c': complex, 'l': long double */
} Case;

static void fill(unsigned char* bytes, size_t count, const Case* c, int seed) {
  memset(bytes, 0, ROOM);
  for (size_t i = 0; i < count; ++i) {
    unsigned char* const at = bytes + i * c->extent;
    const int value = (int)((i * 7 + (size_t)(rank * 13 + seed)) % 5) - 2;
    const double number = value, parts[] = {value, (value + rank) % 3};
    const long double longer = value;
    const int place = rank + (int)i;
    if (c->kind == 'd') memcpy(at, &number, 8), memcpy(at + 8, &place, 4);
    if (c->kind == 'c') memcpy(at, parts, sizeof parts);
    if (c->kind == 'l') memcpy(at, &longer, sizeof longer);
    for (size_t w = 0; strchr("wg", c->kind) && w < c->extent / 4; ++w)
      ((int*)at)[w] = value + (int)w * (rank + 1);
  }
}

/* Bytes between the parts of an element, or after them, may be anything. */
static int differ(const unsigned char* a, const unsigned char* b, const Case* c) {
  double x[2], y[2];
  if (c->kind == 'g') return memcmp(a, b, 4) != 0 || memcmp(a + 8, b + 8, 4) != 0;
  if (c->kind == 'c') { /* zeros may differ in their signs */
    memcpy(x, a, 16), memcpy(y, b, 16);
    return x[0] != y[0] || x[1] != y[1];
  }
  return memcmp(a, b, c->kind == 'd' ? 12 : c->kind == 'l' ? 10 : c->extent) != 0;
}

static void compare(const char* call, const Case* c, size_t count, int in_place) {
  ++compared;
  for (size_t i = 0; i < count; ++i)
    if (differ(out[0] + i * c->extent, out[1] + i * c->extent, c)) {
      fprintf(stderr, "rank %d of %d: %s of %zu %s%s: element %zu is wrong\n", rank, ranks, call,
              count, c->name, in_place ? ", in place" : "", i);
      ++wrong;
      return;
    }
}

static void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  fprintf(stderr, "rank %d: %s returned %d\n", rank, what, code);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void reductions(const Case* c, int n, int root, int in_place) {
  const MPI_Comm all = MPI_COMM_WORLD;
  const size_t count = (size_t)n;
  fill(in, count, c, 1);
  for (int side = 0; side < 2; ++side) {
    fill(out[side], count, c, 1);
    check((side ? PMPI_Allreduce : MPI_Allreduce)(in_place ? MPI_IN_PLACE : in, out[side], n,
                                                  c->type, c->op, all), "allreduce");
  }
  compare("allreduce", c, count, in_place);
  const int here = rank == root;
  fill(out[0], count, c, 1);
  check(MPI_Reduce(here && in_place ? MPI_IN_PLACE : in, here ? out[0] : NULL, n, c->type, c->op,
                   root, all), "reduce");
  compare("reduce", c, rank == root ? count : 0, in_place);
  fill(in, count * (size_t)ranks, c, 2);
  for (int side = 0; side < 2; ++side) {
    fill(out[side], count * (size_t)ranks, c, 2);
    check((side ? PMPI_Reduce_scatter_block : MPI_Reduce_scatter_block)(
              in_place ? MPI_IN_PLACE : in, out[side], n, c->type, c->op, all),
          "reduce_scatter_block");
  }
  compare("reduce_scatter_block", c, count, in_place);
  int counts[64], sum = 0; /* uneven pieces, of which the last is empty */
  for (int r = 0; r < ranks; ++r) sum += counts[r] = r == ranks - 1 ? 0 : 1 + (n + r) % n;
  fill(in, (size_t)sum, c, 3);
  for (int side = 0; side < 2; ++side) {
    fill(out[side], (size_t)sum, c, 3);
    check((side ? PMPI_Reduce_scatter : MPI_Reduce_scatter)(in_place ? MPI_IN_PLACE : in, out[side],
                                                            counts, c->type, c->op, all),
          "reduce_scatter");
  }
  compare("reduce_scatter", c, (size_t)counts[rank], in_place);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  in = malloc(ROOM), out[0] = malloc(ROOM), out[1] = malloc(ROOM);
  MPI_Op pairs, apart;
  MPI_Datatype two, gaps;
  MPI_Op_create(compose_pairs, 0, &pairs), MPI_Op_create(compose_apart, 0, &apart);
  MPI_Type_vector(2, 1, 2, MPI_INT, &two), MPI_Type_create_resized(two, 0, 16, &gaps);
  MPI_Type_commit(&gaps), MPI_Type_free(&two);
  const Case cases[] = {
      {"pairs, an operation of its own", MPI_2INT, pairs, 8, 'w'},
      {"words apart, an operation of its own", gaps, apart, 16, 'g'},
      {"2int, maxloc", MPI_2INT, MPI_MAXLOC, 8, 'w'},
      {"double and int, minloc", MPI_DOUBLE_INT, MPI_MINLOC, 16, 'd'},
      {"complex, product", MPI_C_DOUBLE_COMPLEX, MPI_PROD, 16, 'c'},
      {"complex, sum", MPI_C_DOUBLE_COMPLEX, MPI_SUM, 16, 'c'},
      {"long double, max", MPI_LONG_DOUBLE, MPI_MAX, sizeof(long double), 'l'},
  };
  const int counts[] = {1, 3, 100, MOST};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c)
    for (int k = 0; k < 4; ++k)
      for (int in_place = 0; in_place < 2; ++in_place)
        reductions(&cases[c], counts[k], (int)(c + (size_t)k) % ranks, in_place);
  MPI_Op_free(&pairs), MPI_Op_free(&apart), MPI_Type_free(&gaps);
  printf("rank %d of %d: %d folds compared\n", rank, ranks, compared);
  free(in), free(out[0]), free(out[1]);
  MPI_Finalize();
  return wrong ? 1 : 0;
}
