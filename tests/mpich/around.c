/* Linked into every program of MPICH's tests (CMakeLists.txt). */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>

unsigned ucp_worker_progress(void *worker);

/* MPICH waits by calling UCX in a loop. On fewer cores than ranks, one that waits keeps a core for
   whole time slices: a program took 13 s that takes 0.4 s with this. */
unsigned ucp_worker_progress(void *worker) {
  static unsigned (*real)(void *);
  if (!real) real = (unsigned (*)(void *))dlsym(RTLD_NEXT, "ucp_worker_progress");
  const unsigned done = real ? real(worker) : 0;
  if (done == 0) sched_yield();
  return done;
}

/* The drop-in library leaves the first calls of a communicator to the host MPI, and most of these
   programs make few. So the ranks meet so many times where one is made. */
static int met(int status, const MPI_Comm *made) {
  const char *times = getenv("BARRIERS");
  int between_groups = 0;
  if (status != MPI_SUCCESS || *made == MPI_COMM_NULL || !times) return status;
  MPI_Comm_test_inter(*made, &between_groups);
  for (int i = between_groups ? 0 : atoi(times); i > 0; --i) MPI_Barrier(*made);
  return status;
}

/* The linker calls __wrap_NAME for NAME, and NAME for __real_NAME. */
#define MAKES(name, parameters, arguments) \
  int __real_##name parameters;            \
  int __wrap_##name parameters;            \
  int __wrap_##name parameters { return met(__real_##name arguments, made); }

MAKES(MPI_Comm_dup, (MPI_Comm old, MPI_Comm *made), (old, made))
MAKES(MPI_Comm_split, (MPI_Comm old, int color, int key, MPI_Comm *made), (old, color, key, made))
MAKES(MPI_Comm_create, (MPI_Comm old, MPI_Group group, MPI_Comm *made), (old, group, made))
MAKES(MPI_Comm_create_group, (MPI_Comm old, MPI_Group group, int tag, MPI_Comm *made),
      (old, group, tag, made))
MAKES(MPI_Intercomm_merge, (MPI_Comm old, int high, MPI_Comm *made), (old, high, made))
MAKES(MPI_Cart_create,
      (MPI_Comm old, int n, const int dims[], const int periods[], int reorder, MPI_Comm *made),
      (old, n, dims, periods, reorder, made))
MAKES(MPI_Dist_graph_create_adjacent,
      (MPI_Comm old, int ins, const int in[], const int in_weights[], int outs, const int out[],
       const int out_weights[], MPI_Info info, int reorder, MPI_Comm *made),
      (old, ins, in, in_weights, outs, out, out_weights, info, reorder, made))
