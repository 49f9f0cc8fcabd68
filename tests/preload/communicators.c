/* Many communicators live at once, made in turn from the world and from each other; each is called
   on as it is made, and again when all are there. argv[1]: how many. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks;

static void call_on(MPI_Comm comm, int number) {
  int mine = number + rank, sum = 0, word = rank == number % ranks ? number : -1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  MPI_Bcast(&word, 1, MPI_INT, number % ranks, comm);
  if (sum != ranks * number + ranks * (ranks - 1) / 2 || word != number) {
    printf("rank %d: communicator %d: sum %d, word %d\n", rank, number, sum, word);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

int main(int argc, char** argv) {
  const int many = argc > 1 ? atoi(argv[1]) : 300;
  MPI_Comm* all = malloc(sizeof(MPI_Comm) * (size_t)many);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = 0; i < many; ++i) {
      MPI_Comm_dup(i % 3 == 1 ? all[i - 1] : MPI_COMM_WORLD, &all[i]);
      call_on(all[i], i);
    }
    for (int i = many; i-- > 0;) call_on(all[i], i + 1);
    for (int i = 0; i < many; ++i) MPI_Comm_free(&all[i]);
  }
  printf("rank %d: %d communicators at once\n", rank, many);
  free(all);
  MPI_Finalize();
  return 0;
}
