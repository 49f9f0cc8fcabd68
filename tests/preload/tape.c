/* One rank of a program of collectives, as any program of MPI would make them: reads what to do
   from FOLDER/tape.RANK and writes what is in memory after each call to FOLDER/out.RANK. The form
   of both is told in tests/fuzz/tape.hpp. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_GROUPS = 256, MOST_CALLS = 64, MOST_RANKS = 64, LIMIT_S = 100 };

typedef struct {
  char name[24];
  int root, group, started, in_place, count, uneven, ranks;
  MPI_Datatype type;
  MPI_Op op;
  unsigned char *block[2], *in, *out;
  long bytes[2];
  int sent[MOST_RANKS], received[MOST_RANKS], sent_at[MOST_RANKS], received_at[MOST_RANKS];
  MPI_Request request;
} Call;

static FILE *tape, *answer;
static MPI_Comm comms[MOST_GROUPS];
static Call calls[MOST_CALLS];

static void need(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "tape: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static int number(void) {
  int n = 0;
  need(fscanf(tape, "%d", &n) == 1, "the tape ends within a line");
  return n;
}

static MPI_Datatype type_of(const char* name) {
  if (!strcmp(name, "float64")) return MPI_DOUBLE;
  if (!strcmp(name, "float32")) return MPI_FLOAT;
  if (!strcmp(name, "int32")) return MPI_INT32_T;
  if (!strcmp(name, "uint32")) return MPI_UINT32_T;
  if (!strcmp(name, "int64")) return MPI_INT64_T;
  need(!strcmp(name, "uint64"), "unknown type");
  return MPI_UINT64_T;
}

static MPI_Op op_of(const char* name) {
  static const char* const names[] = {"sum",    "product", "min",         "max",        "bit_and",
                                      "bit_or", "bit_xor", "logical_and", "logical_or"};
  const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN,  MPI_MAX, MPI_BAND,
                        MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR};
  for (int i = 0; i < 9; ++i)
    if (!strcmp(name, names[i])) return ops[i];
  need(!strcmp(name, "logical_xor"), "unknown operation");
  return MPI_LXOR;
}

/* Starts or makes the call, MPI_I<name> or MPI_<letter><name>, with the same arguments. */
#define RUN(LETTER, LOWER, NAME, ...)                               \
  (c->started ? MPI_I##LOWER##NAME(__VA_ARGS__, comm, &c->request)  \
              : MPI_##LETTER##NAME(__VA_ARGS__, comm))

static int reduces(Call* c, MPI_Comm comm) {
  const void* in = c->in_place ? MPI_IN_PLACE : c->in;
  if (!strcmp(c->name, "allreduce"))
    return RUN(A, a, llreduce, in, c->out, c->count, c->type, c->op);
  if (!strcmp(c->name, "reduce"))
    return RUN(R, r, educe, in, c->out, c->count, c->type, c->op, c->root);
  if (strcmp(c->name, "reduce_scatter")) return -1;
  if (c->uneven) return RUN(R, r, educe_scatter, in, c->out, c->sent, c->type, c->op);
  return RUN(R, r, educe_scatter_block, in, c->out, c->count, c->type, c->op);
}

static int moves(Call* c, MPI_Comm comm) {
  const void* in = c->in_place ? MPI_IN_PLACE : c->in;
  MPI_Datatype t = c->type;
  if (!strcmp(c->name, "broadcast")) return RUN(B, b, cast, c->out, c->count, t, c->root);
  if (!strcmp(c->name, "allgather")) {
    if (!c->uneven) return RUN(A, a, llgather, in, c->count, t, c->out, c->count, t);
    return RUN(A, a, llgatherv, in, c->count, t, c->out, c->received, c->received_at, t);
  }
  if (!strcmp(c->name, "alltoall")) {
    if (!c->uneven) return RUN(A, a, lltoall, in, c->count, t, c->out, c->count, t);
    return RUN(A, a, lltoallv, in, c->sent, c->sent_at, t, c->out, c->received, c->received_at, t);
  }
  if (!strcmp(c->name, "gather")) {
    if (!c->uneven) return RUN(G, g, ather, in, c->count, t, c->out, c->count, t, c->root);
    return RUN(G, g, atherv, in, c->count, t, c->out, c->received, c->received_at, t, c->root);
  }
  need(!strcmp(c->name, "scatter"), "unknown collective");
  void* out = c->in_place ? MPI_IN_PLACE : c->out;
  if (!c->uneven) return RUN(S, s, catter, c->in, c->count, t, out, c->count, t, c->root);
  return RUN(S, s, catterv, c->in, c->sent, c->sent_at, t, out, c->count, t, c->root);
}

static void make(Call* c) {
  MPI_Comm comm = comms[c->group];
  int code = -1;
  if (!strcmp(c->name, "barrier"))
    code = c->started ? MPI_Ibarrier(comm, &c->request) : MPI_Barrier(comm);
  if (code < 0) code = reduces(c, comm);
  if (code < 0) code = moves(c, comm);
  need(code == MPI_SUCCESS, "a call has failed");
}

static void report(int n) {
  Call* c = &calls[n];
  fprintf(answer, "call %d %ld %ld\n", n, c->bytes[0], c->bytes[1]);
  for (int b = 0; b < 2; ++b) {
    need(fwrite(c->block[b], 1, (size_t)c->bytes[b], answer) == (size_t)c->bytes[b], "disk full");
    free(c->block[b]);
  }
}

static void read_counts(Call* c) {
  char word[24];
  need(fscanf(tape, "%23s", word) == 1, "no counts");
  c->ranks = number();
  need(c->ranks <= MOST_RANKS, "too many ranks");
  for (int r = 0; r < c->ranks; ++r) c->sent[r] = number();
  for (int r = 0; r < c->ranks; ++r) c->received[r] = number();
  c->sent_at[0] = c->received_at[0] = 0;
  for (int r = 1; r < c->ranks; ++r) {
    c->sent_at[r] = c->sent_at[r - 1] + c->sent[r - 1];
    c->received_at[r] = c->received_at[r - 1] + c->received[r - 1];
  }
}

static void begin(void) {
  const int n = number();
  char type[24], op[24];
  need(n >= 0 && n < MOST_CALLS, "too many calls");
  Call* c = &calls[n];
  need(fscanf(tape, "%23s %23s %23s", c->name, type, op) == 3, "no call");
  c->type = type_of(type), c->op = strcmp(op, "average") ? op_of(op) : MPI_SUM;
  c->root = number(), c->group = number(), c->started = number(), c->in_place = number();
  const int in_block = number(), in_at = number(), out_block = number(), out_at = number();
  c->count = number(), c->uneven = number();
  c->bytes[0] = number(), c->bytes[1] = number();
  if (c->uneven) read_counts(c);
  need(fgetc(tape) == '\n', "a line is longer than it should be");
  for (int b = 0; b < 2; ++b) {
    c->block[b] = malloc((size_t)c->bytes[b]);
    need(fread(c->block[b], 1, (size_t)c->bytes[b], tape) == (size_t)c->bytes[b], "no data");
  }
  c->in = c->block[in_block] + in_at, c->out = c->block[out_block] + out_at;
  make(c);
  if (!c->started) report(n);
}

static void complete(void) {
  const int tests = number(), count = number();
  int open[MOST_CALLS], left = count;
  need(count <= MOST_CALLS, "too many calls");
  for (int i = 0; i < count; ++i) open[i] = number();
  for (int look = 0; tests && left > 0 && look < 1000; ++look)
    for (int i = 0; i < count; ++i) {
      int done = 0;
      if (open[i] < 0) continue;
      MPI_Test(&calls[open[i]].request, &done, MPI_STATUS_IGNORE);
      if (!done) continue;
      report(open[i]), open[i] = -1, --left;
    }
  for (int i = 0; i < count; ++i)
    if (open[i] >= 0) MPI_Wait(&calls[open[i]].request, MPI_STATUS_IGNORE), report(open[i]);
}

static void subgroup(MPI_Comm parent, int group) {
  int ranks[MOST_RANKS];
  const int n = number();
  MPI_Group all, some;
  need(n <= MOST_RANKS, "too many ranks");
  for (int i = 0; i < n; ++i) ranks[i] = number();
  MPI_Comm_group(parent, &all), MPI_Group_incl(all, n, ranks, &some);
  MPI_Comm_create_group(parent, some, group, &comms[group]);
  MPI_Group_free(&all), MPI_Group_free(&some);
}

static void make_groups(const char* way) {
  if (!strcmp(way, "self")) {
    MPI_Comm_dup(MPI_COMM_SELF, &comms[number()]);
    return;
  }
  const MPI_Comm parent = comms[number()];
  const int group = number();
  MPI_Comm none;
  need(group < MOST_GROUPS, "too many groups");
  if (!strcmp(way, "subgroup")) return subgroup(parent, group);
  if (!strcmp(way, "dup")) {
    MPI_Comm_dup(parent, &comms[group]);
    return;
  }
  const int colour = number(), key = number();
  MPI_Comm_split(parent, colour < 0 ? MPI_UNDEFINED : colour, key,
                 group < 0 ? &none : &comms[group]);
}

static void end_program(void) {
  for (int g = 1; g < MOST_GROUPS; ++g)
    if (comms[g] != MPI_COMM_NULL) MPI_Comm_free(&comms[g]);
}

static void follow(const char* word) {
  if (!strcmp(word, "program")) {
    char seed[24];
    end_program();
    alarm(LIMIT_S);
    need(fscanf(tape, "%23s", seed) == 1, "no seed");
    fprintf(answer, "program %s\n", seed);
  } else if (!strcmp(word, "pause")) {
    usleep((useconds_t)number());
  } else if (!strcmp(word, "begin")) {
    begin();
  } else if (!strcmp(word, "complete")) {
    complete();
  } else if (!strcmp(word, "release")) {
    MPI_Comm_free(&comms[number()]);
  } else {
    make_groups(word);
  }
}

int main(int argc, char** argv) {
  char path[1000], word[24];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  need(argc == 2, "usage: tape FOLDER");
  snprintf(path, sizeof path, "%s/tape.%d", argv[1], rank), tape = fopen(path, "rb");
  snprintf(path, sizeof path, "%s/out.%d", argv[1], rank), answer = fopen(path, "wb");
  need(tape && answer, "cannot open the tape");
  for (int g = 0; g < MOST_GROUPS; ++g) comms[g] = MPI_COMM_NULL;
  comms[0] = MPI_COMM_WORLD;
  while (fscanf(tape, "%23s", word) == 1) follow(word);
  end_program();
  need(fclose(answer) == 0, "disk full");
  MPI_Finalize();
  return 0;
}
