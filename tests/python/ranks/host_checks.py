"""Checks of the MPI's own collectives through the binding: what `bench --against mpi` measures."""

from support import checks_in, raises, run_checks

import paceline
from paceline import _core, mpi
from paceline.bench.cases import Case
from paceline.bench.variants import OfMpi, Unavailable, Variant


def world_of(comm):
    world = mpi.load()[0].world()
    assert (world.rank, world.size) == (comm.rank, comm.size)
    return world


def check_collectives(comm):
    """Every collective, with results that the benchmark's own checks find exact."""
    world = world_of(comm)
    for collective in _core.collectives():
        # MPICH 4.0.2 crashes in a long MPI_Reduce in place at a root that is not 0, in C too.
        any_root = _core.has_root(collective) and collective != "reduce"
        for nbytes in (8, 4096, 300_000):
            for root in {0, comm.size - 1} if any_root else {0}:
                case = Case(collective, nbytes, comm.size, comm.rank, root=root)
                case.spoil()
                OfMpi(world).bind(Variant("mpi"), case)()
                assert not case.fault(), (collective, nbytes, root, case.fault())


def check_types_and_operations(comm):
    world = world_of(comm)
    for dtype in ("float64", "int8", "uint16", "int64", "bool"):
        for op in ("sum", "max", "product"):
            case = Case("allreduce", 64, comm.size, comm.rank, dtype=dtype, op=op)
            OfMpi(world).bind(Variant("mpi"), case)()
            assert not case.fault(), (dtype, op, case.fault())


def check_what_mpi_has_not(comm):
    world = world_of(comm)
    case = Case("allreduce", 64, comm.size, comm.rank, op="average")
    raises(paceline.RefusalError, "average", OfMpi(world).bind(Variant("mpi"), case))
    case = Case("allreduce", 64, comm.size, comm.rank, dtype="float16")
    raises(paceline.RefusalError, "float16", OfMpi(world).bind(Variant("mpi"), case))
    case = Case("allreduce", 64, comm.size, comm.rank, dtype="bfloat16")
    raises(Unavailable, "16-bit", lambda: OfMpi(world).bind(Variant("mpi"), case))


if __name__ == "__main__":
    import host_checks

    run_checks(checks_in(host_checks))
