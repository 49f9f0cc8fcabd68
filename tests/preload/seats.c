/* Threads whose first calls meet in the drop-in library: the program stands between it and the MPI,
   by its own PMPI functions, and keeps each step back where another order would do harm. The
   argument is "worlds" or "made". Ends with "rank r: PART ok", or says what is wrong and
   ends with 1. To be linked with -rdynamic -ldl. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static MPI_Comm first, second;    /* made past the library */
static MPI_Comm made[2];
static __thread int place;        /* of a thread: 1 with the second communicator */
static volatile int slow_ends;    /* the ranks end their joining in different order */
static volatile int splits;

enum { WHILE_US = 300000 };

static void need(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

#define REAL(name)                    \
  static __typeof__(&name) real;      \
  if (!real) real = dlsym(RTLD_NEXT, #name)

int PMPI_Comm_split(MPI_Comm comm, int colour, int order, MPI_Comm* new) {
  REAL(PMPI_Comm_split);
  if (comm != MPI_COMM_SELF) ++splits;
  return real(comm, colour, order, new);
}

/* The last one of a joining says whether all have joined. */
int PMPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm) {
  REAL(PMPI_Allreduce);
  const int code = real(in, out, count, type, op, comm);
  if (slow_ends && count == 2 && place == (rank != 0)) usleep(WHILE_US);
  return code;
}

static void sum_over(MPI_Comm comm) {
  int one = 1, sum = 0;
  need(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && sum == size,
       "wrong sum");
}

static void* begins(void* comm) {
  place = comm == &second;
  for (int call = 0; call < 3; ++call) sum_over(*(MPI_Comm*)comm); /* the host makes two */
  return NULL;
}

static void in_two_threads(void* (*part)(void*)) {
  pthread_t thread[2];
  slow_ends = 1;
  pthread_create(&thread[0], NULL, part, &first);
  pthread_create(&thread[1], NULL, part, &second);
  for (int i = 0; i < 2; ++i) pthread_join(thread[i], NULL);
  slow_ends = 0;
}

/* Both threads begin with communicators of all processes, before there is a world. */
static void worlds(void) {
  in_two_threads(begins);
  const int before = splits;
  for (int i = 0; i < 3; ++i) {
    MPI_Comm again;
    MPI_Comm_dup(MPI_COMM_WORLD, &again);
    begins(&again);
    MPI_Comm_free(&again);
  }
  need(splits == before, "later communicators are worlds of their own");
}

static void* makes(void* comm) {
  place = comm == &second;
  MPI_Comm_dup(*(MPI_Comm*)comm, &made[place]);
  for (int call = 0; call < 3; ++call) sum_over(made[place]);
  return NULL;
}

/* Both threads make one, before there is a world. Later ones know what these have agreed on; of
   MPI_COMM_WORLD, on which calls are only started, neither has told anything. */
static void makers(void) {
  in_two_threads(makes);
  const int before = splits;
  for (int call = 0; call < 3; ++call) {
    int one = 1, sum = 0;
    MPI_Request request;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    need(sum == size, "wrong sum of a started call");
  }
  for (int i = 0; i < 2; ++i) {
    MPI_Comm again;
    MPI_Comm_dup(made[i], &again);
    begins(&again);
    MPI_Comm_free(&again), MPI_Comm_free(&made[i]);
  }
  need(splits == before, "later communicators are worlds of their own");
}

int main(int argc, char** argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
  need(level == MPI_THREAD_MULTIPLE && argc == 2, "no MPI_THREAD_MULTIPLE, or no argument");
  PMPI_Comm_dup(MPI_COMM_WORLD, &first), PMPI_Comm_dup(MPI_COMM_WORLD, &second);
  if (strcmp(argv[1], "worlds") == 0) worlds();
  else makers();
  MPI_Comm_free(&first), MPI_Comm_free(&second);
  printf("rank %d: %s ok\n", rank, argv[1]);
  MPI_Finalize();
  return 0;
}
