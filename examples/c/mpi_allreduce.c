// An MPI program that leaves its sums to Paceline: the ranks of a communicator, half of them here.
//
//   mpicc mpi_allreduce.c $(pkg-config --cflags --libs paceline) -o mpi_allreduce
//   mpiexec -n 4 ./mpi_allreduce
#include <mpi.h>
#include <paceline/paceline.h>
#include <stdio.h>

// Ends all processes with the library's message where a call failed.
static void check(paceline_status status) {
  if (status == PACELINE_OK) return;
  fprintf(stderr, "%s\n", paceline_error());
  MPI_Abort(MPI_COMM_WORLD, status);
}

int main(int argc, char** argv) {
  int threads, rank;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);

  MPI_Comm half;  // even and odd ranks
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  paceline_comm *world, *part;
  check(paceline_init_mpi(NULL, &world));  // all processes
  check(paceline_init_mpi(&half, &part));

  double x = rank + 1, y = rank + 1;
  check(paceline_allreduce(world, &x, &x, 1, PACELINE_F64, PACELINE_SUM));
  check(paceline_allreduce(part, &y, &y, 1, PACELINE_F64, PACELINE_SUM));
  printf("rank %d of %d: all %g, half %g\n", rank, paceline_size(world), x, y);

  check(paceline_finalize(&part));  // before MPI is
  check(paceline_finalize(&world));
  MPI_Comm_free(&half);
  MPI_Finalize();
  return 0;
}
