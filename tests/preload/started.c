/* Non-blocking and persistent collectives, mixed with messages of the program's own and completed
   in random orders; each result is compared to the byte with that of the host's blocking call,
   PMPI_. Arguments: the first seed, the number of rounds of each, and of seeds. Prints
   "rank r: n requests compared", or says what is wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_RANKS = 8, MOST = 700, ROOM = MOST_RANKS * (2 * MOST + 8), AT_ONCE = 12, KINDS = 14 };

static int rank, size, compared, wrong;
static unsigned state; /* the same on all ranks */

static unsigned any(unsigned n) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % n;
}

static void need(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* One call under way. A message of the program's own has the kind -1. */
typedef struct {
  int kind, n, root, in_place, is_persistent, is_strided, is_over;
  MPI_Comm comm;
  int me, all;
  MPI_Datatype type;
  int counts[MOST_RANKS], places[MOST_RANKS], sent[MOST_RANKS], sent_at[MOST_RANKS];
  int *in, *out, *expected;
} Call;

static Call calls[2 * AT_ONCE];
static MPI_Request requests[2 * AT_ONCE];

static const char* const names[KINDS] = {
    "allreduce", "reduce",     "reduce_scatter_block", "reduce_scatter", "bcast",    "barrier",
    "allgather", "allgatherv", "gather",               "gatherv",        "scatter",  "scatterv",
    "alltoall",  "alltoallv"};

#ifdef WITH_PERSISTENT
#define FORMS(NAME, I, ...)                                                                      \
  (form == 0   ? PMPI_##NAME(__VA_ARGS__, c->comm)                                               \
   : form == 1 ? MPI_I##I(__VA_ARGS__, c->comm, request)                                         \
               : MPI_##NAME##_init(__VA_ARGS__, c->comm, MPI_INFO_NULL, request))
#define BARRIER                                                                                  \
  (form == 0   ? PMPI_Barrier(c->comm)                                                           \
   : form == 1 ? MPI_Ibarrier(c->comm, request)                                                  \
               : MPI_Barrier_init(c->comm, MPI_INFO_NULL, request))
#else
#define FORMS(NAME, I, ...) \
  (form == 0 ? PMPI_##NAME(__VA_ARGS__, c->comm) : MPI_I##I(__VA_ARGS__, c->comm, request))
#define BARRIER (form == 0 ? PMPI_Barrier(c->comm) : MPI_Ibarrier(c->comm, request))
#endif

/* form: the host's blocking call, the non-blocking one, the persistent one. */
static int make(const Call* c, int form, int* out, MPI_Request* request) {
  const int n = c->n, root = c->root, here = c->in_place && c->me == root;
  const void* in = c->in_place ? MPI_IN_PLACE : (void*)c->in;
  const MPI_Datatype type = c->type;
  static int own[MOST]; /* MPICH 4.0.2 crashes in an MPI_Reduce in place */
  if (form == 0 && here) memcpy(own, out, sizeof(int) * (size_t)n);
  switch (c->kind) {
    case 0: return FORMS(Allreduce, allreduce, in, out, n, MPI_INT, MPI_SUM);
    case 1: return FORMS(Reduce, reduce,
                         !here ? (void*)c->in : form == 0 ? (void*)own : MPI_IN_PLACE, out, n,
                         MPI_INT, MPI_MAX, root);
    case 2: return FORMS(Reduce_scatter_block, reduce_scatter_block, in, out, n, MPI_INT, MPI_SUM);
    case 3: return FORMS(Reduce_scatter, reduce_scatter, in, out, c->counts, MPI_INT, MPI_SUM);
    case 4: return FORMS(Bcast, bcast, out, n, type, root);
    case 5: return BARRIER;
    case 6: return FORMS(Allgather, allgather, in, n, type, out, n, type);
    case 7: return FORMS(Allgatherv, allgatherv, in, c->counts[c->me], type, out, c->counts,
                         c->places, type);
    case 8: return FORMS(Gather, gather, here ? MPI_IN_PLACE : (void*)c->in, n, type, out, n, type,
                         root);
    case 9: return FORMS(Gatherv, gatherv, here ? MPI_IN_PLACE : (void*)c->in, c->counts[c->me],
                         type, out, c->counts, c->places, type, root);
    case 10: return FORMS(Scatter, scatter, c->in, n, type, here ? MPI_IN_PLACE : (void*)out, n,
                          type, root);
    case 11: return FORMS(Scatterv, scatterv, c->in, c->counts, c->places, type,
                          here ? MPI_IN_PLACE : (void*)out, c->counts[c->me], type, root);
    case 12: return FORMS(Alltoall, alltoall, in, n, type, out, n, type);
    default: return FORMS(Alltoallv, alltoallv, in, c->sent, c->sent_at, type, out, c->counts,
                          c->places, type);
  }
}

static void fill(Call* c, int number) {
  for (int i = 0; i < ROOM; ++i) {
    c->in[i] = number * 7919 + rank * 104729 + i;
    c->out[i] = c->expected[i] = number * 31 + rank * 1299709 + i;
  }
}

/* Draws a call; the same on all ranks of its communicator. */
static void draw(Call* c, MPI_Comm comm, int number) {
  c->kind = (int)any(KINDS);
  c->n = (int)(any(4) == 0 ? any(MOST) : any(9));
  c->comm = comm;
  PMPI_Comm_rank(comm, &c->me), PMPI_Comm_size(comm, &c->all);
  c->root = (int)any(MOST_RANKS) % c->all;
  c->in_place = any(4) == 0 && c->all > 1 && c->n > 1; /* else the host's own */
  c->is_strided = c->kind > 3 && any(3) == 0;
  c->type = MPI_INT;
  c->is_over = 0;
#ifdef WITH_PERSISTENT
  c->is_persistent = any(3) == 0;
  if (c->is_persistent && c->n < 2) c->n = 2; /* MPICH finds errors in inactive ones of its own */
#endif
  const unsigned salt = any(1000);
  for (int r = 0, at = 0, sent_at = 0; r < c->all; ++r) {
    c->counts[r] = c->n ? ((int)salt + (c->kind == 13 ? r + 3 * c->me : r)) % c->n : 0;
    c->sent[r] = c->n ? ((int)salt + c->me + 3 * r) % c->n : 0;
    if (c->kind == 13 && c->in_place)
      c->counts[r] = c->sent[r] = c->n ? (c->me * r + c->me + r + (int)salt) % c->n : 0;
    c->places[r] = at, at += c->counts[r] + r % 2; /* with gaps */
    c->sent_at[r] = sent_at, sent_at += c->sent[r] + 1;
  }
  fill(c, number);
}

static void compare(Call* c) {
  ++compared;
  /* MPI leaves what is behind the result of these undefined. */
  const int own = c->kind == 2 ? c->n : c->kind == 3 ? c->counts[c->me] : 0;
  if (c->in_place && (c->kind == 2 || c->kind == 3))
    memcpy(c->out + own, c->expected + own, sizeof(int) * (size_t)(ROOM - own));
  if (memcmp(c->out, c->expected, sizeof(int) * ROOM) == 0) return;
  if (wrong++ < 5)
    fprintf(stderr,
            "rank %d: %s of %d, root %d, in place %d, strided %d, persistent %d: is wrong\n", rank,
            names[c->kind], c->n, c->root, c->in_place, c->is_strided, c->is_persistent);
}

static void begin(Call* c, MPI_Request* request) {
  /* The type of a non-blocking call is freed at once, as MPI allows; hosts do not hold that of a
     persistent one. */
  if (c->is_strided) {
    PMPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &c->type);
    PMPI_Type_commit(&c->type);
  }
  make(c, 0, c->expected, NULL);
  make(c, 1 + c->is_persistent, c->out, request);
  if (c->is_strided && !c->is_persistent) MPI_Type_free(&c->type);
  if (c->is_persistent) MPI_Start(request);
}

enum { LONG_MESSAGE = 60000 };
static int from[LONG_MESSAGE], to[LONG_MESSAGE];

/* A message to the next rank and one from any; every other round it may have any tag. */
static void talk(int at, int round, int n) {
  for (int way = 0; way < 2; ++way) {
    Call* c = &calls[at + way];
    c->kind = -1, c->is_persistent = 0, c->is_over = 0, c->n = n;
  }
  for (int i = 0; i < n; ++i) from[i] = round * 8 + rank + i, to[i] = 0;
  MPI_Irecv(to, n, MPI_INT, MPI_ANY_SOURCE, round % 2 ? MPI_ANY_TAG : round, MPI_COMM_WORLD,
            &requests[at]);
  MPI_Isend(from, n, MPI_INT, (rank + 1) % size, round, MPI_COMM_WORLD, &requests[at + 1]);
}

static void check_heard(int round, int n) {
  for (int i = 0; i < n; ++i)
    need(to[i] == round * 8 + (rank + size - 1) % size + i, "a message of the program's own");
}

static void is_over(int i) {
  if (calls[i].is_over) return;
  calls[i].is_over = 1;
  if (calls[i].kind >= 0) compare(&calls[i]);
}

/* Completes all, by one call of MPI after the other; ranks go different ways. */
static void complete(int n, unsigned* own) {
  int indices[2 * AT_ONCE], flag, index, some, left = n;
  MPI_Status status, statuses[2 * AT_ONCE];
  while (left > 0) {
    *own = *own * 1103515245u + 12345u;
    switch ((*own >> 16) % 9) {
      case 0:
        MPI_Waitall(n, requests, statuses);
        for (int i = 0; i < n; ++i) is_over(i);
        return;
      case 1:
        flag = 0;
        for (int i = 0; i < n; ++i) flag |= calls[i].is_over && calls[i].is_persistent;
        if (flag) break; /* MPICH's MPI_Testall finds errors in inactive requests */
        MPI_Testall(n, requests, &flag, statuses);
        if (!flag) break;
        for (int i = 0; i < n; ++i) is_over(i);
        return;
      case 2:
        MPI_Waitany(n, requests, &index, &status);
        if (index == MPI_UNDEFINED) return;
        is_over(index);
        break;
      case 3:
        MPI_Testany(n, requests, &index, &flag, &status);
        if (flag && index == MPI_UNDEFINED) return;
        if (flag) is_over(index);
        break;
      case 4:
        MPI_Waitsome(n, requests, &some, indices, statuses);
        if (some == MPI_UNDEFINED) return;
        for (int i = 0; i < some; ++i) is_over(indices[i]);
        break;
      case 5:
        MPI_Testsome(n, requests, &some, indices, statuses);
        if (some == MPI_UNDEFINED) return;
        for (int i = 0; i < some; ++i) is_over(indices[i]);
        break;
      default: {
        const int i = (int)(*own >> 8) % n;
        if (calls[i].is_over) break;
        flag = 1;
        if ((*own >> 20) % 3 == 0) MPI_Wait(&requests[i], &status);
        else if ((*own >> 20) % 3 == 1) MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
        else MPI_Request_get_status(requests[i], &flag, &status), flag = 0;
        if (flag) is_over(i);
      }
    }
    left = 0;
    for (int i = 0; i < n; ++i) left += !calls[i].is_over;
  }
}

static void free_all(int n) {
  for (int i = 0; i < n; ++i)
    if (calls[i].kind >= 0 && calls[i].is_persistent) {
      MPI_Request_free(&requests[i]);
      if (calls[i].is_strided) MPI_Type_free(&calls[i].type);
    }
}

/* A rank waits in a call of MPI's own for one that waits for both of them in a started call. */
static void wait_elsewhere(void) {
  int one = 1, sum = 0, token = 0;
  MPI_Request request;
  if (size < 2) return;
  MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  if (rank == 0) {
    MPI_Recv(&token, 1, MPI_INT, size - 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == size - 1) MPI_Send(&token, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
  }
  need(sum == size, "a sum that another call waited for");
}

/* Requests as MPI allows them to be treated: converted, copied, in a communicator that is freed. */
static void treat(void) {
  int one = 1, sum = 0;
  MPI_Comm other;
  MPI_Request request, copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  for (int i = 0; i < 3; ++i) MPI_Barrier(other); /* the third one is ours */
  MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, other, &request);
  MPI_Comm_free(&other);
  copy = MPI_Request_f2c(MPI_Request_c2f(request));
  need(copy == request, "a converted request");
  MPI_Wait(&copy, MPI_STATUS_IGNORE);
  need(copy == MPI_REQUEST_NULL && sum == size, "a copy of a request");
  MPI_Wait(&copy, MPI_STATUS_IGNORE);
}

/* Rounds of calls at random, the same on all ranks but for the order in which they complete. */
static void play(int seed, int rounds, const MPI_Comm* comms) {
  state = (unsigned)seed;
  unsigned own = (unsigned)(seed * 100 + rank);
  for (int round = 0; round < rounds; ++round) {
    int n = 0;
    for (const int wanted = 1 + (int)any(AT_ONCE); n < wanted; ++n) {
      const unsigned which = any(8);
      draw(&calls[n], comms[which < 5 ? 0 : which == 5 ? 1 : which == 6 ? 2 : 3], round * 50 + n);
      calls[n].is_persistent &= calls[n].all > 1;
      begin(&calls[n], &requests[n]);
    }
    const int words = any(6) == 0 ? LONG_MESSAGE : 3;
    talk(n, 100 + round, words);
    complete(n + 2, &own);
    check_heard(100 + round, words);
    for (int again = 0; again < 2; ++again) /* the persistent ones, together */
      for (int i = 0; i < n; ++i) {
        Call* c = &calls[i];
        if (!c->is_persistent) continue;
        fill(c, round * 50 + i + 25 + again);
        make(c, 0, c->expected, NULL);
        MPI_Startall(1, &requests[i]);
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        need(requests[i] != MPI_REQUEST_NULL, "a persistent request that has gone");
        compare(c);
      }
    free_all(n);
  }
}

int main(int argc, char** argv) {
  const int first = argc > 1 ? atoi(argv[1]) : 1, rounds = argc > 2 ? atoi(argv[2]) : 30;
  const int seeds = argc > 3 ? atoi(argv[3]) : 1;
  MPI_Comm comms[4];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
  need(size <= MOST_RANKS, "too many ranks");
  for (int i = 0; i < 2 * AT_ONCE; ++i)
    calls[i].in = malloc(sizeof(int) * ROOM), calls[i].out = malloc(sizeof(int) * ROOM),
    calls[i].expected = malloc(sizeof(int) * ROOM);
  MPI_Barrier(MPI_COMM_WORLD);
  comms[0] = MPI_COMM_WORLD, comms[3] = MPI_COMM_SELF;
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &comms[2]);
  for (int i = 0; i < 3; ++i) MPI_Barrier(comms[1]), MPI_Barrier(comms[2]);
  for (int seed = first; seed < first + seeds; ++seed) play(seed, rounds, comms);
  wait_elsewhere();
  treat();
  MPI_Comm_free(&comms[1]), MPI_Comm_free(&comms[2]);
  printf("rank %d: %d requests compared\n", rank, compared);
  MPI_Finalize();
  return wrong ? 1 : 0;
}
