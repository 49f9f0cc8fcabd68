"""Checks of arrays in memory that all ranks reach: paceline.empty and Communicator.empty."""

import gc

import numpy
from support import checks_in, data, run_checks

import paceline


def whole(comm, count, shift=0):
    return sum(data(r + shift, count, "float64") for r in range(comm.size))


def check_types_and_shapes(comm):
    for dtype in ("float64", "float32", "float16", "int32", "uint8", "bool"):
        x = comm.empty((3, 4), dtype)
        assert x.shape == (3, 4) and x.dtype == dtype and not x.any()
    assert comm.empty(0).shape == (0,) and comm.empty(5).dtype == numpy.float32
    assert paceline.empty(()).shape == ()


def check_allreduce_takes_it_by_itself(comm):
    x, out = comm.empty(5001, "float64"), comm.empty(5001, "float64")
    if comm.size > 1:
        assert "symmetric" in comm.explain("allreduce", x)
    for turn in range(3):
        x[:] = data(comm.rank + turn, 5001, "float64")
        assert comm.allreduce(x, out) is out
        numpy.testing.assert_array_equal(out, whole(comm, 5001, turn))
        numpy.testing.assert_array_equal(x, data(comm.rank + turn, 5001, "float64"))
        comm.allreduce(x)
        numpy.testing.assert_array_equal(x, whole(comm, 5001, turn))


def check_parts_of_an_array(comm):
    x = comm.empty(9000, "float64")
    for first, last in ((0, 1000), (1000, 4097), (4097, 9000)):
        x[first:last] = data(comm.rank, last - first, "float64")
    requests = [comm.iallreduce(x[a:b]) for a, b in ((0, 1000), (1000, 4097), (4097, 9000))]
    for request in requests:
        request.wait()
    expected = [whole(comm, n, 0) for n in (1000, 3097, 4903)]
    numpy.testing.assert_array_equal(x, numpy.concatenate(expected))


def check_the_other_collectives(comm):
    p, n = comm.size, 700
    mine = comm.empty(n, "float64")
    all_of_them, received = comm.empty(p * n, "float64"), comm.empty(p * n, "float64")
    mine[:] = data(comm.rank, n, "float64")
    comm.allgather(mine, all_of_them)
    rows = numpy.concatenate([data(r, n, "float64") for r in range(p)])
    numpy.testing.assert_array_equal(all_of_them, rows)
    comm.alltoall(all_of_them, received)
    own = data(comm.rank, n, "float64")
    numpy.testing.assert_array_equal(received, numpy.tile(own, p))
    comm.reduce_scatter(all_of_them, mine)
    numpy.testing.assert_array_equal(mine, p * own)
    mine[:] = comm.rank
    comm.broadcast(mine, root=p - 1)
    assert (mine == p - 1).all()


def check_private_buffers_go_on_working(comm):
    shared, private = comm.empty(3000, "float64"), numpy.zeros(3000)
    shared[:] = data(comm.rank, 3000, "float64")
    comm.allreduce(shared, private)
    numpy.testing.assert_array_equal(private, whole(comm, 3000))


def check_an_array_can_go_first_on_one_rank(comm):
    x = comm.empty(4000, "float64")
    x[:] = data(comm.rank, 4000, "float64")
    y = comm.allreduce(x, comm.empty(4000, "float64")).copy()
    if comm.rank == 0:
        del x
        gc.collect()
    comm.barrier()
    numpy.testing.assert_array_equal(y, whole(comm, 4000))


def check_torch(comm):
    try:
        import torch
    except ImportError:
        return
    x = comm.empty((100, 50), torch.bfloat16)
    assert isinstance(x, torch.Tensor) and x.dtype == torch.bfloat16 and x.shape == (100, 50)
    x.fill_(comm.rank + 1)
    comm.allreduce(x)
    assert (x == comm.size * (comm.size + 1) // 2).all()


def check_bad_shapes(comm):
    for shape in ((-1,), (3, -2)):
        try:
            comm.empty(shape)
        except paceline.UsageError as error:
            assert "negative" in str(error)
        else:
            raise AssertionError(f"{shape} was taken")


if __name__ == "__main__":
    import shared_checks

    run_checks(checks_in(shared_checks))
