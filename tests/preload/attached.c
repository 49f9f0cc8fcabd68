/* A program that makes communicators in every way of MPI, and on each of them nothing but started
   calls, five, before any blocking collective. Prints "rank r: n communicators". */
#include <mpi.h>
#include <stdio.h>

static int rank, size, made;

static void use(MPI_Comm comm) {
  int ranks = 0;
  if (comm == MPI_COMM_NULL) return;
  MPI_Comm_size(comm, &ranks);
  for (int call = 0; call < 5; ++call) {
    int one = 1 + call, sum = 0;
    MPI_Request request;
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (sum == ranks * one) continue;
    fprintf(stderr, "rank %d: communicator %d, call %d: a wrong sum\n", rank, made, call);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  ++made;
}

static void use_and_free(MPI_Comm comm) {
  use(comm);
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  MPI_Comm comm, grid, half, between;
  MPI_Group group;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
  const MPI_Comm all = MPI_COMM_WORLD;
  MPI_Comm_dup(all, &comm), use_and_free(comm);
  use(all); /* the first of all processes has made the world */
  MPI_Comm_dup_with_info(all, MPI_INFO_NULL, &comm), use_and_free(comm);
  MPI_Comm_split(all, 0, -rank, &comm), use_and_free(comm);
  MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm), use_and_free(comm);
  MPI_Comm_group(all, &group);
  MPI_Comm_create(all, group, &comm), use_and_free(comm);
  MPI_Comm_create_group(all, group, 7, &comm), use_and_free(comm);
  MPI_Group_free(&group);
  const int periods[] = {1, 1}, sizes[] = {size, 1}, remain[] = {1, 0};
  MPI_Cart_create(all, 2, sizes, periods, 0, &grid), use(grid);
  MPI_Cart_sub(grid, remain, &comm), use_and_free(comm);
  MPI_Comm_free(&grid);
  int index[16], edges[16], next = (rank + 1) % size, before = (rank + size - 1) % size;
  const int one = 1;
  for (int r = 0; r < size; ++r) index[r] = r + 1, edges[r] = (r + 1) % size;
  MPI_Graph_create(all, size, index, edges, 0, &comm), use_and_free(comm);
  MPI_Dist_graph_create(all, 1, &rank, &one, &next, &one, MPI_INFO_NULL, 0, &comm);
  use_and_free(comm);
  MPI_Dist_graph_create_adjacent(all, 1, &before, &one, 1, &next, &one, MPI_INFO_NULL, 0,
                                 &comm);
  use_and_free(comm);
  MPI_Comm_split(all, rank == 0, 0, &half);
  MPI_Intercomm_create(half, 0, all, rank == 0 ? 1 : 0, 9, &between);
  MPI_Intercomm_merge(between, rank == 0, &comm), use_and_free(comm);
  MPI_Comm_free(&between), MPI_Comm_free(&half);
  printf("rank %d: %d communicators\n", rank, made);
  MPI_Finalize();
  return 0;
}
