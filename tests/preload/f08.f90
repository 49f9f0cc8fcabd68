! A program that takes MPI from its module mpi_f08; one rank sleeps before each allreduce.
program f08
  use mpi_f08
  implicit none
  integer, parameter :: calls = 5
  integer :: rank, ranks, call_number, begun, now, rate
  real(8) :: in(4) = [1, 2, 3, 4], out(64)
  type(MPI_Request) :: requests(2)
  type(MPI_Comm) :: ring
#ifdef PERSISTENT
  type(MPI_Request) :: sum_of
#endif

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  do call_number = 1, calls
    if (rank == 1) then
      call system_clock(begun, rate)
      do
        call system_clock(now)
        if (real(now - begun) / real(rate) > 0.06) exit
      end do
    end if
    call MPI_Allreduce(in, out, 4, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  end do
  if (rank == 0) print '(a,f4.0)', 'sum', out(2)
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Iallreduce(in, out, 4, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, requests(1))
  call MPI_Ibarrier(MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
#ifdef PERSISTENT
  call MPI_Allreduce_init(in, out, 4, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, &
                          MPI_INFO_NULL, sum_of)
  do call_number = 1, 2
    call MPI_Start(sum_of)
    call MPI_Wait(sum_of, MPI_STATUS_IGNORE)
  end do
  call MPI_Request_free(sum_of)
#endif
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., ring)
  call MPI_Neighbor_allgather(in, 2, MPI_DOUBLE_PRECISION, out, 2, MPI_DOUBLE_PRECISION, ring)
  call MPI_Finalize()
end program
