/* Rank 0 waits in a barrier while its MPI has something to do at every look, as if others served
   themselves from its memory all the time: it must not sleep between two looks. Open MPI's function
   that looks is found here, before its own. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static long looks;
static int moves;

int opal_progress(void);
int opal_progress(void) {
  static int (*host)(void);
  if (!host) {
    void* symbol = dlsym(RTLD_NEXT, "opal_progress");
    memcpy(&host, &symbol, sizeof host);
  }
  ++looks;
  const int moved = host();
  return moves ? 1 : moved;
}

static long sleeps(void) {
  struct rusage used;
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw; /* sched_yield() does not count as one */
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (moves = 0; moves < 2; ++moves) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) usleep(300000); /* long enough for some hundred looks */
    const long looked = looks, slept = sleeps();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
      printf("moves %d: %ld looks, %ld sleeps\n", moves, looks - looked, sleeps() - slept);
  }
  MPI_Finalize();
  return 0;
}
