/* A program that asks for a level of threads, and uses all that it allows: the argument says which.
   Ends with "rank r: LEVEL ok", or says what is wrong and ends with 1. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 3, TURNS = 100 };

static int rank, size;
static MPI_Comm comms[THREADS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t passed = PTHREAD_COND_INITIALIZER;
static int turn;
static volatile int is_over;

static void need(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Two that are served, and one that is the host's. */
static void calls(MPI_Comm comm, int mine) {
  int sum = -1, from = rank, scan = -1;
  need(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && sum == mine * size,
       "a wrong sum");
  need(MPI_Bcast(&from, 1, MPI_INT, size - 1, comm) == MPI_SUCCESS && from == size - 1,
       "a wrong broadcast");
  need(MPI_Scan(&mine, &scan, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS &&
           scan == mine * (rank + 1), "a wrong scan");
}

/* SINGLE has no other thread; FUNNELED one that computes and calls nothing. */
static void main_thread_alone(void) {
  for (int i = 0; i < TURNS; ++i) calls(comms[i % THREADS], i);
}

static void* computes(void* sum) {
  while (!is_over)
    for (int i = 0; i < 1000; ++i) *(volatile long*)sum += i;
  return NULL;
}

/* One after the other, in the same order on all ranks. */
static void* in_turns(void* number) {
  const int mine = *(int*)number;
  for (int i = 0; i < TURNS; ++i) {
    pthread_mutex_lock(&lock);
    while (turn % THREADS != mine) pthread_cond_wait(&passed, &lock);
    calls(i % 2 ? comms[mine] : comms[0], i);
    ++turn;
    pthread_cond_broadcast(&passed);
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

static void* at_will(void* number) {
  for (int i = 0; i < TURNS; ++i) calls(comms[*(int*)number], i);
  return NULL;
}

static void in_threads(void* (*body)(void*)) {
  pthread_t threads[THREADS];
  int numbers[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    numbers[i] = (i + rank) % THREADS;   /* they begin in another order on every rank */
    pthread_create(&threads[i], NULL, body, &numbers[i]);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    int level;
  } levels[] = {{"single", MPI_THREAD_SINGLE},
                {"funneled", MPI_THREAD_FUNNELED},
                {"serialized", MPI_THREAD_SERIALIZED},
                {"multiple", MPI_THREAD_MULTIPLE}};
  int wanted = -1, granted;
  long sum = 0;
  pthread_t other;
  for (int i = 0; i < 4; ++i)
    if (argc == 2 && strcmp(argv[1], levels[i].name) == 0) wanted = levels[i].level;
  if (wanted < 0) return 2;
  MPI_Init_thread(&argc, &argv, wanted, &granted);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
  need(granted >= wanted, "the level is not granted");
  for (int i = 0; i < THREADS; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  if (wanted == MPI_THREAD_FUNNELED) pthread_create(&other, NULL, computes, &sum);
  if (wanted == MPI_THREAD_SERIALIZED) in_threads(in_turns);
  else if (wanted == MPI_THREAD_MULTIPLE) in_threads(at_will);
  else main_thread_alone();
  is_over = 1;
  if (wanted == MPI_THREAD_FUNNELED) pthread_join(other, NULL);
  calls(MPI_COMM_WORLD, 7);
  for (int i = 0; i < THREADS; ++i) MPI_Comm_free(&comms[i]);
  printf("rank %d: %s ok\n", rank, argv[1]);
  MPI_Finalize();
  return 0;
}
