! Every blocking call that the drop-in library serves, with and without MPI_IN_PLACE, from the module
! or header that MODULE names; each result is compared with what it must be.
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
  integer :: whole(64 * n), own(n), counts(64), places(64)
  TYPE_OF(MPI_Datatype) :: pair
  integer :: r

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  counts = n
  do r = 1, ranks
    places(r) = n * (ranks - r)
  end do
  do turn = 1, times
    call reductions
    call movements
    call pieces
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

  subroutine movements
    integer :: i
    call fill
    call MPI_Bcast(own, n, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, error)
    call check('bcast', all(own == [(value_of(ranks - 1, i), i = 1, n)]))
    call fill
    call MPI_Allgather(own, n, MPI_INTEGER, whole, n, MPI_INTEGER, MPI_COMM_WORLD, error)
    call check('allgather', all_pieces_in_order())
    whole(n * me + 1:n * me + n) = own
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, whole, n, MPI_INTEGER, MPI_COMM_WORLD, error)
    call check('allgather in place', all_pieces_in_order())
    call fill
    call MPI_Allgatherv(own, n, MPI_INTEGER, whole, counts, places, MPI_INTEGER, MPI_COMM_WORLD, error)
    call check('allgatherv', all_pieces_in_places())
  end subroutine

  subroutine pieces
    call fill
    call MPI_Gather(own, n, MPI_INTEGER, whole, n, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    call check('gather', me /= 0 .or. all_pieces_in_order())
    call fill
    call MPI_Gatherv(own, n, MPI_INTEGER, whole, counts, places, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    call check('gatherv', me /= 0 .or. all_pieces_in_places())
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

  logical function all_pieces_in_order()
    integer :: rank, i
    all_pieces_in_order = .true.
    do rank = 0, ranks - 1
      do i = 1, n
        if (whole(n * rank + i) /= value_of(rank, i)) all_pieces_in_order = .false.
      end do
    end do
  end function

  logical function all_pieces_in_places()
    integer :: rank, i
    all_pieces_in_places = .true.
    do rank = 0, ranks - 1
      do i = 1, n
        if (whole(places(rank + 1) + i) /= value_of(rank, i)) all_pieces_in_places = .false.
      end do
    end do
  end function
end program
