/* Calls that differ between ranks, and right ones before and after them: the ranks of a wrong call
   are told, and the communicator goes on. The argument is "bcast" or "allreduce". Ends with "rank
   r: PART ok, refused N", or says what is wrong and ends with 1. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 10, TURNS = 20 };

static int rank, size, refused;
static int in[COUNT], out[COUNT * 16];

static void need(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void count(int code) { refused += code != MPI_SUCCESS; }

/* Only those that receive can see that the root sends another length. */
static void bcast(void) {
  count(MPI_Bcast(in, rank == 0 ? 1 : COUNT, MPI_INT, 0, MPI_COMM_WORLD));
  need(rank == 0 || refused == 1, "a longer buffer went unseen");
  count(MPI_Bcast(in, rank == 0 ? COUNT : 1, MPI_INT, 0, MPI_COMM_WORLD));
  need(rank == 0 || refused == 2, "a shorter buffer went unseen");
}

static void allreduce(void) {
  const int mine = rank == size - 1 ? COUNT / 2 : COUNT;
  count(MPI_Allreduce(in, out, mine, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  need(refused == 1, "a shorter allreduce went unseen");
}

/* Of every kind, with errors that end the program. */
static void right_calls(void) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  for (int turn = 0; turn < TURNS; ++turn) {
    int mine = rank + turn, sum = -1, from = rank == turn % size ? turn : -1;
    MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, 0, comm);
    need(rank || sum == size * (size - 1) / 2 + size * turn, "wrong sum at the root");
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    need(sum == size * (size - 1) / 2 + size * turn, "wrong sum");
    MPI_Bcast(&from, 1, MPI_INT, turn % size, comm);
    need(from == turn, "wrong broadcast");
    MPI_Allgather(&mine, 1, MPI_INT, out, 1, MPI_INT, comm);
    for (int r = 0; r < size; ++r) need(out[r] == r + turn, "wrong allgather");
    MPI_Barrier(comm);
  }
}

int main(int argc, char** argv) {
  MPI_Comm other;
  int one = 1, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
  need(argc == 2, "usage: lengths PART");
  right_calls();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (strcmp(argv[1], "bcast") == 0) bcast();
  else allreduce();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  right_calls();
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  for (int call = 0; call < 3; ++call) /* the host makes two */
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, other);
  need(sum == size, "wrong sum on a later communicator");
  MPI_Comm_free(&other);
  printf("rank %d: %s ok, refused %d\n", rank, argv[1], refused);
  MPI_Finalize();
  return 0;
}
