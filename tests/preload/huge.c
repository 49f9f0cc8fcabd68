/* A broadcast of more than 2 GiB, once by a long count and once by a datatype that must be packed.
   Prints "rank r: whole". */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 65536, BLOCKS = 32769 };

int main(int argc, char** argv) {
  const size_t bytes = (size_t)BLOCK * BLOCKS;
  int rank, whole = 1;
  MPI_Datatype block;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  uint32_t* data = malloc(bytes);
  MPI_Type_contiguous(BLOCK, MPI_BYTE, &block), MPI_Type_commit(&block);
  for (int way = 0; way < 2; ++way) {
    if (rank) memset(data, 255, bytes);
    for (size_t i = 0; rank == 0 && i < bytes / 4; ++i) data[i] = (uint32_t)(i * 2654435761u) + way;
    if (way == 1) MPI_Bcast(data, BLOCKS, block, 0, MPI_COMM_WORLD);
#if MPI_VERSION >= 4
    else MPI_Bcast_c(data, (MPI_Count)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
#else
    else MPI_Bcast(data, BLOCKS * (BLOCK / 8), MPI_DOUBLE, 0, MPI_COMM_WORLD);
#endif
    for (size_t i = 0; i < bytes / 4; ++i) whole &= data[i] == (uint32_t)(i * 2654435761u) + way;
  }
  MPI_Type_free(&block);
  printf("rank %d: %s\n", rank, whole ? "whole" : "wrong");
  MPI_Finalize();
  return !whole;
}
