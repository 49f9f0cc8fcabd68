/* One-sided calls on a rank that waits in a collective: many after each other, and one a barrier.
   Prints what each took on average; argument: how many. The sums that arrive are checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static MPI_Win window;

static void add_one(void) {
  const long one = 1;
  MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
  MPI_Accumulate(&one, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_SUM, window);
  MPI_Win_unlock(1, window);
}

int main(int argc, char** argv) {
  const int calls = argc > 1 ? atoi(argv[1]) : 1000;
  long sum = 0;
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Win_create(&sum, sizeof sum, sizeof sum, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (int together = 1; together >= 0; --together) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int call = 0; call < calls; ++call) {
      if (rank == 0) add_one();
      if (!together) MPI_Barrier(MPI_COMM_WORLD);
    }
    const double took = MPI_Wtime() - begin;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
      printf("%s: %.2f us each\n", together ? "one after the other" : "one a barrier",
             1e6 * took / calls);
  }
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
  const long seen = sum;
  MPI_Win_unlock(rank, window);
  if (rank == 1) printf("sum %ld of %d\n", seen, 2 * calls);
  MPI_Win_free(&window);
  MPI_Finalize();
  return seen != (rank == 1 ? 2 * calls : 0);
}
