"""Checks of the MPI's own collectives through the binding: what `bench --against mpi` measures."""

import numpy as np
from support import checks_in, raises, run_checks

import paceline
from paceline import _core, mpi
from paceline_bench.measure.cases import Case
from paceline_bench.measure.variants import OfMpi, OfPaceline, Unavailable, Variant


def host_of(comm, native=False):
    host = OfMpi(*mpi.load(), native)
    assert (host.world.rank, host.world.size) == (comm.rank, comm.size)
    return host


def check_collectives(comm):
    """Every collective, with results that the benchmark's own checks find exact."""
    host = host_of(comm)
    for collective in _core.collectives():
        # MPICH 4.0.2 crashes in a long MPI_Reduce in place at a root that is not 0, in C too.
        any_root = _core.has_root(collective) and collective != "reduce"
        for nbytes in (8, 4096, 300_000):
            for root in {0, comm.size - 1} if any_root else {0}:
                case = Case(collective, nbytes, comm.size, comm.rank, root=root)
                case.spoil()
                host.bind(Variant("mpi"), case)()
                assert not case.fault(), (collective, nbytes, root, case.fault())


def check_types_and_operations(comm):
    host = host_of(comm)
    for dtype in ("float64", "int8", "uint16", "int64", "bool"):
        for op in ("sum", "max", "product"):
            case = Case("allreduce", 64, comm.size, comm.rank, dtype=dtype, op=op)
            host.bind(Variant("mpi"), case)()
            assert not case.fault(), (dtype, op, case.fault())


def check_what_mpi_has_not(comm):
    host = host_of(comm)
    case = Case("allreduce", 64, comm.size, comm.rank, op="average")
    raises(paceline.RefusalError, "average", lambda: host.bind(Variant("mpi"), case))
    case = Case("allreduce", 64, comm.size, comm.rank, dtype="float16")
    raises(paceline.RefusalError, "float16", lambda: host.bind(Variant("mpi"), case))
    case = Case("allreduce", 64, comm.size, comm.rank, dtype="bfloat16")
    raises(Unavailable, "16-bit", lambda: host.bind(Variant("mpi"), case))


def check_other_forms(comm):
    """Several non-blocking calls at once, and a ring of Sendrecv: the same exact results."""
    bound = host_of(comm, native=True)
    for collective in ("allreduce", "reduce", "broadcast", "allgather"):
        for nbytes in (4, 4096, 300_004):
            for parts in (1, 3, 7):
                case = Case(collective, nbytes, comm.size, comm.rank)
                case.spoil()
                bound.bind(Variant("mpi", segments=parts, form="concurrent"), case)()
                assert not case.fault(), (collective, nbytes, parts, case.fault())
    for nbytes in (4, 4096, 300_004):
        for separate in (False, True):
            case = Case("allreduce", nbytes, comm.size, comm.rank, separate=separate)
            case.spoil()
            bound.bind(Variant("mpi", form="sendrecv_ring"), case)()
            assert not case.fault(), (nbytes, separate, case.fault())


def check_forms_that_are_refused(comm):
    bound = host_of(comm, native=True)
    case = Case("reduce_scatter", 64, comm.size, comm.rank)
    several = Variant("mpi", segments=2, form="concurrent")
    raises(paceline.RefusalError, "elsewhere", lambda: bound.bind(several, case))
    case = Case("broadcast", 64, comm.size, comm.rank)
    ring, other = (Variant("mpi", form=form) for form in ("sendrecv_ring", "other"))
    raises(paceline.RefusalError, "Sendrecv", lambda: bound.bind(ring, case))
    raises(paceline.UsageError, "no form", lambda: bound.bind(other, case))
    raises(Unavailable, "blocking", lambda: host_of(comm).bind(several, case))


def check_transfers_alone(comm):
    """Nothing is combined, and the same call right after combines as ever."""
    ours = OfPaceline(comm, native=True)
    ring = Variant("paceline", "ring", 2)
    case = Case("allreduce", 4096, comm.size, comm.rank)
    brought = [case.brought(rank) for rank in range(comm.size)]
    for _ in range(2):
        case.rewrite()
        ours.bind(ring.without_arithmetic(), case)()
        assert case.fault()
        assert np.any([case.output == one for one in brought], axis=0).all()
        case.rewrite()
        ours.bind(ring, case)()
        assert not case.fault()


def check_no_transfers_alone_where_nothing_is_sent(comm):
    """On one node what is chosen reads its peers' memory: to leave that out would leave nothing."""
    ours, case = OfPaceline(comm, native=True), Case("allreduce", 4096, comm.size, comm.rank)
    chosen = Variant("paceline")
    for _ in range(2):
        ours.bind(chosen, case)()  # so that it is known when it is asked for without
        refused = ours.bind(chosen.without_arithmetic(), case)
        raises(paceline.RefusalError, "Name an algorithm that sends", refused)
    case = Case("broadcast", 4096, comm.size, comm.rank)
    raises(paceline.RefusalError, "combines nothing", ours.bind(chosen.without_arithmetic(), case))
    through_python = OfPaceline(comm)
    raises(Unavailable, "native", lambda: through_python.bind(chosen.without_arithmetic(), case))
    raises(TypeError, "combines", lambda: comm.allreduce(case.input, combines=False))


if __name__ == "__main__":
    import host_checks

    run_checks(checks_in(host_checks))
