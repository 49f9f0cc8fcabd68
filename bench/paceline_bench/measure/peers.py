"""The MPIs of a comparison: the environment that each needs here, and settings that do well.

All of it is environment: an MPI reads its settings at start, so one launch has one setting.
"""

import os

from paceline.errors import UsageError

OPENMPI, INTEL, MPICH = "Open MPI", "Intel MPI", "MPICH"


def kind_of(version):
    """The MPI of this version text."""
    if "Intel" in version:
        return INTEL
    return OPENMPI if version.startswith("Open MPI") else MPICH


def needed(kind, library, ranks):
    """The environment that it needs besides this process's own: {variable: value}.

    The benchmark binds ranks by itself, and ranks that outnumber cores must let each other run."""
    oversubscribed = ranks > len(os.sched_getaffinity(0))
    wanted = {}
    if kind == OPENMPI and oversubscribed:
        wanted["OMPI_MCA_mpi_yield_when_idle"] = "1"
    if kind == INTEL:
        wanted["I_MPI_PIN"] = "off"
        folder = os.path.dirname(library)
        if os.path.exists(os.path.join(folder, "libshm-fi.so")):  # in a wheel, beside the library
            wanted["FI_PROVIDER_PATH"] = folder
        if oversubscribed:
            wanted["I_MPI_THREAD_YIELD"] = "2"
    return {name: value for name, value in wanted.items() if name not in os.environ}


def tuned(number):
    """Open MPI's coll/tuned with one algorithm for allreduce."""
    return {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
            "OMPI_MCA_coll_tuned_allreduce_algorithm": str(number)}


# By kind the settings that did best at some size of one node, with 2 ranks, and the defaults.
# Those of allreduce say nothing about the other collectives.
DEFAULT = "default"
ANY_COLLECTIVE = {
    OPENMPI: {DEFAULT: {}, "sm": {"OMPI_MCA_coll_sm_priority": "100"},
              "nocma": {"OMPI_MCA_smsc": "^cma"}},
    MPICH: {DEFAULT: {}},
    INTEL: {DEFAULT: {}},
}
ALLREDUCE = {
    OPENMPI: {"ring": tuned(4), "rabenseifner": tuned(6)},
    MPICH: {name: {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": name}
            for name in ("reduce_scatter_allgather", "recursive_doubling", "ring")},
    INTEL: {f"adjust{number}": {"I_MPI_ADJUST_ALLREDUCE": str(number)} for number in (1, 2, 8, 12)},
}


def settings(kind, collective):
    """{name: {variable: value}} for a collective of this MPI, the defaults first."""
    return {**ANY_COLLECTIVE[kind], **(ALLREDUCE[kind] if collective == "allreduce" else {})}


def setting(kind, collective, name):
    """The variables of a named setting. Raises UsageError, which lists them."""
    known = settings(kind, collective)
    if name not in known:
        raise UsageError(f"bench: no setting '{name}' of {kind} for {collective} is known; use one "
                         f"of {', '.join(known)}, or --mpi-set NAME=VALUE.")
    return known[name]


def pairs(words):
    """{NAME: VALUE} from words NAME=VALUE. Raises UsageError."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise UsageError(f"bench: '{word}' is no setting of an MPI; write NAME=VALUE, such as "
                             "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=ring.")
        found[name] = value
    return found
