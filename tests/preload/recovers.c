/* A program that goes on after a rank's death or a revoked communicator (ULFM): the errors that it
   acts on. Argument: "revoke" or "death", of the last rank's doing. */
#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static int sum_over(MPI_Comm comm, int* sum) {
  const int one = 1;
  return MPI_Allreduce(&one, sum, 1, MPI_INT, MPI_SUM, comm);
}

static const char* name_of(int code) {
  int class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  if (class == MPIX_ERR_REVOKED) return "revoked";
  if (class == MPIX_ERR_PROC_FAILED) return "process failed";
  return class == MPI_SUCCESS ? "success" : "another error";
}

int main(int argc, char** argv) {
  int sum = 0, members = 0;
  MPI_Comm all, rest;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  const int is_death = argc > 1 && strcmp(argv[1], "death") == 0;
  printf("rank %d: first %s\n", rank, name_of(sum_over(all, &sum)));
  fflush(stdout);
  if (rank == size - 1) {
    usleep(300000); /* the others wait by then */
    if (is_death) kill(getpid(), SIGKILL);
    MPIX_Comm_revoke(all);
  } else {
    const int code = sum_over(all, &sum);
    /* Who has heard of the death ends the wait of the others by a revoke. */
    const int is_right = strcmp(name_of(code), "revoked") == 0 ||
                         (is_death && strcmp(name_of(code), "process failed") == 0);
    printf("rank %d: then %s\n", rank, is_right ? "as it should" : name_of(code));
    fflush(stdout);
    MPIX_Comm_revoke(all);
  }
  MPIX_Comm_shrink(all, &rest);
  MPI_Comm_size(rest, &members);
  const int code = sum_over(rest, &sum);
  printf("rank %d: rest %s, %d of %d\n", rank, name_of(code), sum, members);
  fflush(stdout);
  if (is_death) _exit(0); /* this MPI's end sometimes waits for the dead for ever */
  MPI_Comm_free(&rest), MPI_Comm_free(&all);
  MPI_Finalize();
  return 0;
}
