! The calls that the drop-in library serves, with and without MPI_IN_PLACE, from the module or header
! that MODULE names; each result is compared with what it must be.
#if MODULE == 3
#define TYPE_OF(kind) type(kind)
#else
#define TYPE_OF(kind) integer
#endif
program served
#if MODULE == 3
  use mpi_f08
#elif MODULE == 2
  use mpi
#endif
  implicit none
#if MODULE == 1
  include 'mpif.h'
#endif
  integer, parameter :: n = 5, times = 3
  integer :: me, ranks, error, turn, wrong = 0
  integer :: whole(64 * n), own(n), counts(64), places(64), in_order(64)
  TYPE_OF(MPI_Datatype) :: pair
  TYPE_OF(MPI_Request) :: requests(4)
#if MODULE == 3
  type(MPI_Status) :: status, statuses(4)
#else
  integer :: status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 4)
#endif
  integer :: several(n, 4), done, indices(4), index
  logical :: flag
  integer :: r

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  counts = n
  do r = 1, ranks
    places(r) = n * (ranks - r)
    in_order(r) = n * (r - 1)
  end do
  do turn = 1, times
    call reductions
    call movements
    call pieces
    call started
  end do
  call MPI_Type_vector(2, 1, 2, MPI_INTEGER, pair, error)
  call MPI_Type_commit(pair, error)
  own = 7
  if (me == 0) own = value_of(me, 0)
  call MPI_Bcast(own, 1, pair, 0, MPI_COMM_WORLD, error)
  call check('bcast of a derived type', own(1) == 0 .and. own(3) == 0)
  call MPI_Type_free(pair, error)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  if (wrong == 0) print '(a)', 'right'
  call MPI_Finalize(error)

contains

  integer function value_of(rank, i)
    integer, intent(in) :: rank, i
    value_of = 100 * rank + i
  end function

  integer function sum_of(i)
    integer, intent(in) :: i
    sum_of = 50 * ranks * (ranks - 1) + ranks * i
  end function

  subroutine check(what, holds)
    character(*), intent(in) :: what
    logical, intent(in) :: holds
    if (.not. holds) then
      wrong = wrong + 1
      print '(a,i0,2a)', 'rank ', me, ': wrong: ', what
    end if
  end subroutine

  subroutine fill
    integer :: i
    own = [(value_of(me, i), i = 1, n)]
    whole = -1
  end subroutine

  subroutine reductions
    integer :: i, total(n)
    total = [(sum_of(i), i = 1, n)]
    call fill
    call MPI_Allreduce(own, whole, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    call check('allreduce', all(whole(:n) == total) .and. error == MPI_SUCCESS)
    call MPI_Allreduce(MPI_IN_PLACE, own, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    call check('allreduce in place', all(own == total))
    call fill
    if (me == 0) then
      call MPI_Reduce(MPI_IN_PLACE, own, n, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, error)
      call check('reduce', all(own == total))
    else
      call MPI_Reduce(own, whole, n, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, error)
    end if
    whole(:n * ranks) = me
    call MPI_Reduce_scatter_block(MPI_IN_PLACE, whole, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    call check('reduce_scatter_block', all(whole(:n) == ranks * (ranks - 1) / 2))
    whole(:n * ranks) = me
    call MPI_Reduce_scatter(whole, own, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    call check('reduce_scatter', all(own == ranks * (ranks - 1) / 2))
  end subroutine

  ! Each way to complete a request, at least once.
  subroutine started
    integer :: i, total(n), left
    total = [(sum_of(i), i = 1, n)]
    call fill
    do i = 1, 4
      several(:, i) = own
      call MPI_Iallreduce(MPI_IN_PLACE, several(:, i), n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, &
                          requests(i), error)
    end do
    call MPI_Wait(requests(1), status, error)
    call check('iallreduce', all(several(:, 1) == total) .and. error == MPI_SUCCESS)
    flag = .false.
    do while (.not. flag)
      call MPI_Test(requests(2), flag, MPI_STATUS_IGNORE, error)
    end do
    call MPI_Waitall(4, requests, statuses, error)
    call check('iallreduce and all', all(several(:, 4) == total))
    do i = 1, 4
      call MPI_Ibcast(several(:, i), n, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(i), error)
    end do
    call MPI_Waitany(4, requests, index, status, error)
    call check('ibcast and any', index /= MPI_UNDEFINED)
    call MPI_Waitsome(4, requests, done, indices, MPI_STATUSES_IGNORE, error)
    call check('ibcast and some', done >= 1)
    left = 3 - done
    do while (left > 0)
      call MPI_Testsome(4, requests, done, indices, statuses, error)
      left = left - done
    end do
    call MPI_Ibarrier(MPI_COMM_WORLD, requests(1), error)
    flag = .false.
    do while (.not. flag)
      call MPI_Request_get_status(requests(1), flag, status, error)
    end do
    call MPI_Testall(4, requests, flag, statuses, error)
    call check('ibarrier', flag)
#ifdef PERSISTENT
    call MPI_Allreduce_init(own, several, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &
                            requests(1), error)
    call MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, requests(2), error)
    do i = 1, 2
      several = -1
      call MPI_Start(requests(1), error)
      call MPI_Startall(1, requests(2:2), error)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
      call check('allreduce_init', all(several(:, 1) == total))
    end do
    call MPI_Request_free(requests(1), error)
    call MPI_Request_free(requests(2), error)
#endif
  end subroutine

  subroutine movements
    integer :: i
    call fill
    call MPI_Bcast(own, n, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, error)
    call check('bcast', all(own == [(value_of(ranks - 1, i), i = 1, n)]))
    call fill
    call MPI_Allgather(own, n, MPI_INTEGER, whole, n, MPI_INTEGER, MPI_COMM_WORLD, error)
    call check('allgather', all_pieces_at(in_order))
    whole(n * me + 1:n * me + n) = own
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, whole, n, MPI_INTEGER, MPI_COMM_WORLD, error)
    call check('allgather in place', all_pieces_at(in_order))
    call fill
    call MPI_Allgatherv(own, n, MPI_INTEGER, whole, counts, places, MPI_INTEGER, MPI_COMM_WORLD, error)
    call check('allgatherv', all_pieces_at(places))
  end subroutine

  subroutine pieces
    call fill
    call MPI_Gather(own, n, MPI_INTEGER, whole, n, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    call check('gather', me /= 0 .or. all_pieces_at(in_order))
    call fill
    call MPI_Gatherv(own, n, MPI_INTEGER, whole, counts, places, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    call check('gatherv', me /= 0 .or. all_pieces_at(places))
    call all_values
    call MPI_Scatter(whole, n, MPI_INTEGER, own, n, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    call check('scatter', own(2) == value_of(me, 2))
    if (me == 0) then
      call MPI_Scatter(whole, n, MPI_INTEGER, MPI_IN_PLACE, n, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    else
      call MPI_Scatter(whole, n, MPI_INTEGER, own, n, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    end if
    call check('scatter in place', own(2) == value_of(me, 2))
    call MPI_Scatterv(whole, counts, places, MPI_INTEGER, own, n, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    call check('scatterv', own(2) == value_of(ranks - 1 - me, 2))
    call all_values
    call MPI_Alltoall(MPI_IN_PLACE, n, MPI_INTEGER, whole, n, MPI_INTEGER, MPI_COMM_WORLD, error)
    call check('alltoall', whole(1) == value_of(me, 1) .and. whole(n * (ranks - 1) + 1) == value_of(me, 1))
    call all_values
    call MPI_Alltoallv(MPI_IN_PLACE, counts, places, MPI_INTEGER, whole, counts, places, MPI_INTEGER, &
                       MPI_COMM_WORLD, error)
    call check('alltoallv', whole(1) == value_of(ranks - 1 - me, 1))
  end subroutine

  subroutine all_values
    integer :: rank, i
    do rank = 0, ranks - 1
      do i = 1, n
        whole(n * rank + i) = value_of(rank, i)
      end do
    end do
  end subroutine

  logical function all_pieces_at(first)
    integer, intent(in) :: first(:)
    integer :: rank, i
    all_pieces_at = .true.
    do rank = 0, ranks - 1
      do i = 1, n
        if (whole(first(rank + 1) + i) /= value_of(rank, i)) all_pieces_at = .false.
      end do
    end do
  end function
end program
