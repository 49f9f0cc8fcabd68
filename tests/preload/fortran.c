/* The names under which programs of Fortran reach MPI, called as Fortran calls them: everything by
   its address. No Fortran compiler is needed for it. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

void mpi_init_(MPI_Fint* error);
void mpi_finalize_(MPI_Fint* error);
void mpi_comm_rank_(MPI_Fint* comm, MPI_Fint* rank, MPI_Fint* error);
void mpi_allreduce_(void* in, void* out, MPI_Fint* n, MPI_Fint* type, MPI_Fint* op,
                    MPI_Fint* comm, MPI_Fint* error);
void mpi_barrier_(MPI_Fint* comm, MPI_Fint* error);
void mpi_allgatherv_(void* in, MPI_Fint* n, MPI_Fint* type, void* out, MPI_Fint* counts,
                     MPI_Fint* places, MPI_Fint* into, MPI_Fint* comm, MPI_Fint* error);

void mpi_iallreduce_(void* in, void* out, MPI_Fint* n, MPI_Fint* type, MPI_Fint* op,
                     MPI_Fint* comm, MPI_Fint* request, MPI_Fint* error);
void mpi_ibarrier_(MPI_Fint* comm, MPI_Fint* request, MPI_Fint* error);
void mpi_waitall_(MPI_Fint* n, MPI_Fint* requests, MPI_Fint* statuses, MPI_Fint* error);

enum { MOST = 16, CALLS = 5 };

int main(void) {
  MPI_Fint error = 0, rank = 0, n = 4, counts[MOST], places[MOST];
  double in[4] = {1, 2, 3, 4}, out[4 * MOST];
  for (int r = 0; r < MOST; ++r) {
    counts[r] = 4;
    places[r] = 4 * r;
  }
  mpi_init_(&error);
  MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD), type = MPI_Type_c2f(MPI_DOUBLE);
  MPI_Fint op = MPI_Op_c2f(MPI_SUM);
  mpi_comm_rank_(&world, &rank, &error);
  for (int call = 0; call < CALLS; ++call) {
    if (rank == 1) usleep(60000);
    mpi_allreduce_(in, out, &n, &type, &op, &world, &error);
  }
  if (rank == 0) printf("sum %g\n", out[1]);
  mpi_barrier_(&world, &error);
  mpi_allgatherv_(in, &n, &type, out, counts, places, &type, &world, &error);
  MPI_Fint requests[2], both = 2, statuses[2 * sizeof(MPI_Status)];
  mpi_iallreduce_(in, out, &n, &type, &op, &world, &requests[0], &error);
  mpi_ibarrier_(&world, &requests[1], &error);
  mpi_waitall_(&both, requests, statuses, &error);
  mpi_finalize_(&error);
  return error;
}
