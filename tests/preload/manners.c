/* What a library between a program and its MPI must not spoil: the arguments say what. Every part
   ends with "rank r: NAME ok", or says what is wrong and ends with 1. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void need(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int sum_over(MPI_Comm comm, int mine) {
  int sum = -1;
  need(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS, "MPI_Allreduce fails");
  return sum;
}

/* A rank inside a collective still owes another one a message, without which that never comes. */
static void progress(void) {
  enum { LENGTH = 1 << 22 };
  char* data = malloc(LENGTH);
  MPI_Request request;
  sum_over(MPI_COMM_WORLD, 1);
  for (int turn = 0; turn < 3; ++turn) {
    memset(data, rank == 0 ? turn + 1 : 0, LENGTH);
    if (rank == 0) MPI_Isend(data, LENGTH, MPI_CHAR, size - 1, turn, MPI_COMM_WORLD, &request);
    if (rank == size - 1)
      MPI_Recv(data, LENGTH, MPI_CHAR, 0, turn, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    need(sum_over(MPI_COMM_WORLD, 1) == size, "wrong sum");
    if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == size - 1) need(data[LENGTH - 1] == turn + 1, "wrong message");
  }
  free(data);
}

/* The host makes the first two calls of a communicator that is not MPI_COMM_WORLD. */
static void make_joined(MPI_Comm comm) { MPI_Barrier(comm), MPI_Barrier(comm); }

/* An MPI has some 2000 communicators at a time: none may be kept. Some are made before there is a
   world that they could belong to. */
static void many(void) {
  MPI_Comm part, same;
  for (int i = 0; i < 2600; ++i) {
    if (i == 20) sum_over(MPI_COMM_WORLD, 1);
    MPI_Comm_split(MPI_COMM_WORLD, i < 20 ? rank % 2 : rank / 2, rank, &part);
    MPI_Comm_dup(part, &same);
    make_joined(part), make_joined(same);
    const int members = sum_over(part, 1);
    int expected;
    MPI_Comm_size(same, &expected);
    need(members == expected && sum_over(same, 1) == expected, "wrong sum on a part");
    MPI_Comm_free(&part), MPI_Comm_free(&same);
    if (i == 20) i = 2000 - 1; /* the dear ones are few */
  }
}

/* Two threads begin with communicators of their own, in another order on every rank. */
static void* on_its_own(void* comm) {
  for (int i = 0; i < 200; ++i)
    need(sum_over(*(MPI_Comm*)comm, i) == i * size, "wrong sum in a thread");
  return NULL;
}

static void threads(void) {
  int level;
  pthread_t thread[3];
  MPI_Comm comm[3];
  MPI_Query_thread(&level);
  need(level == MPI_THREAD_MULTIPLE, "no MPI_THREAD_MULTIPLE");
  for (int i = 0; i < 3; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
  for (int i = 0; i < 3; ++i)
    pthread_create(&thread[i], NULL, on_its_own, &comm[(i + rank) % 3]);
  for (int i = 0; i < 3; ++i) pthread_join(thread[i], NULL);
  for (int i = 0; i < 3; ++i) MPI_Comm_free(&comm[i]);
  need(sum_over(MPI_COMM_WORLD, 1) == size, "wrong sum after the threads");
}

/* Between groups everything is the host's. */
static void between(void) {
  MPI_Comm half, both;
  const int mine = rank < size / 2;
  if (size == 1) return;
  MPI_Comm_split(MPI_COMM_WORLD, mine, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, mine ? size / 2 : 0, 5, &both);
  need(sum_over(both, 1) == (mine ? size - size / 2 : size / 2), "wrong sum of the other group");
  MPI_Barrier(both);
  MPI_Comm_free(&both), MPI_Comm_free(&half);
}

/* Ranks that disagree: an error on all of them, by the communicator's handler. */
static int handled;

static void handler(MPI_Comm* comm, int* code, ...) { (void)comm, handled = *code; }

static void errors(void) {
  int in = 1, out;
  MPI_Comm comm;
  MPI_Errhandler own;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(handler, &own);
  MPI_Comm_set_errhandler(comm, own);
  make_joined(comm);
  const int code =
      MPI_Allreduce(&in, &out, 1, MPI_INT, rank == 0 ? MPI_SUM : MPI_MAX, comm);
  need(code == MPI_ERR_OTHER && handled == code, "differing operations went unseen");
  MPI_Errhandler_free(&own);
  MPI_Comm_free(&comm);
  need(sum_over(MPI_COMM_WORLD, 1) == size, "another communicator suffers");
}

/* A program that still calls while MPI_Finalize takes its attributes away. */
static int at_the_end(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  need(sum_over(MPI_COMM_WORLD, 1) == size, "wrong sum inside MPI_Finalize");
  return MPI_SUCCESS;
}

static void finalize(void) {
  int before, after;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &before, NULL);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &after, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, before, NULL);
  sum_over(MPI_COMM_WORLD, 1);
  MPI_Comm_set_attr(MPI_COMM_SELF, after, NULL);
}

/* A message long enough for copies from one rank's memory to another's. */
static void send_to_all(int root) {
  static unsigned char data[4 << 20];
  for (int i = 0; i < (int)sizeof data; ++i) data[i] = rank == root ? (unsigned char)(i / 7) : 0;
  MPI_Bcast(data, sizeof data, MPI_BYTE, root, MPI_COMM_WORLD);
  for (int i = 0; i < (int)sizeof data; ++i)
    need(data[i] == (unsigned char)(i / 7), "a wrong byte of a long broadcast");
}

/* A rank that gives its privileges up: what is there goes on, and so does what is made later. */
static void user(void) {
  MPI_Comm same;
  sum_over(MPI_COMM_WORLD, 1);
  for (int root = 0; root < size; ++root) send_to_all(root);
  if (rank == size - 1) need(setuid(65534) == 0, "no other user");
  need(sum_over(MPI_COMM_WORLD, 1) == size, "wrong sum after setuid");
  for (int turn = 0; turn < 2; ++turn)
    for (int root = 0; root < size; ++root) send_to_all(root);
  for (int i = 0; i < 3; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &same);
    make_joined(same);
    need(sum_over(same, i) == i * size, "wrong sum on what is made after setuid");
    MPI_Comm_free(&same);
  }
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*part)(void);
  } parts[] = {
      {"progress", progress}, {"many", many},     {"threads", threads},
      {"between", between},   {"errors", errors}, {"finalize", finalize},
      {"user", user},
  };
  int level, wanted = MPI_THREAD_SINGLE;
  for (int i = 1; i < argc; ++i)
    if (strcmp(argv[i], "threads") == 0) wanted = MPI_THREAD_MULTIPLE;
  MPI_Init_thread(&argc, &argv, wanted, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 1; i < argc; ++i) {
    int found = 0;
    for (size_t part = 0; part < sizeof parts / sizeof *parts; ++part)
      if (strcmp(parts[part].name, argv[i]) == 0) parts[part].part(), found = 1;
    need(found, "an argument names no part");
    printf("rank %d: %s ok\n", rank, argv[i]);
  }
  MPI_Finalize();
  return 0;
}
