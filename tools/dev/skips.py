"""Known reasons to skip a test, of the C++ tests and of the Python tests.

A run in which one is left out for another reason fails (running.py; tools/dev/phases.py for ctest).
So a new reason gets a row here, a regular expression, and a thought about the run that covers it.
"""

import re

KNOWN = (
    # Not in this run, by intent.
    r"PACELINE_LONG=1 tries this, too",
    r"this torch lets no Python class be a Backend",  # `./dev test --long` brings the newest
    # Programs that a machine may lack, and `./dev mpi` or `./dev setup` bring if they can.
    r"no [\w, ]*(munged|slurmctld|slurmd|srun|sbatch): apt-get install slurm-wlm",
    r"this Slurm has no plug-in for \w+",
    r"no MPI of that family where the loader looks",
    r"[\w-]+ is not installed \(\./dev mpi\)",
    r"[\w-]+ (comes without|has no) (a )?(C |Fortran )?(compiler|mpicc|mpicxx|\w*c\+\+|gcc|clang)",
    r"Intel MPI is not installed",
    r"this system has no libfabric",
    r"[\w-]+ is not installed \(Debian: [\w.-]+\)",
    r"no feigned CUDA driver has been built \(\./dev build\)",
    r"no CUDA here: .*",
    r"no nvcc: .*",
    r"preload: no drop-in library has been built for the MPI of .*",
    r"preload: '.* -show' fails .*",
    r"no pkg-config on this machine",
    r"no library at hand that is no MPI",
    r"could not import '(torch|PIL\.Image|matplotlib|sklearn|expecttest|psutil|mpi4py)': .*",
    r"could not import '(nanobind|ruff)': .*",
    r"(lightning|accelerate|transformers|ray|deepspeed|keras) is not installed \(pip install \w+\)",
    # Tests that need root, or a system that has it.
    r"slurmd and munged are started as root",
    r"only root can .*",
    r"the lab makes namespaces and interfaces; it needs root",
    r"the lab needs namespaces, and this system gives none .*",
    r"needs CAP_NET_RAW and CAP_NET_ADMIN",
    r"no control group of kind \w+ can be made here",
    r"the system copies nothing between processes here",
    r"the system filters no calls",
    r"this system does not say what is registered \(Linux before 6\.3\)",
    r"a sanitizer opens descriptors of its own",
    r"shared memory comes in pages of more than 4 KiB here",
    r"one processor alone",
    r"[\d.]+ GiB of memory are free; this needs \d+",
)


def is_known(reason):
    return any(re.fullmatch(pattern, reason, re.DOTALL) for pattern in KNOWN)
