"""Programs of others, as Debian packs them, under the drop-in library: they print the numbers that
they print without it, their own checks pass, and the calls that are not served have known reasons.
"""

import dataclasses
import glob
import math
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field

import launched
import pytest
from length import SLOWNESS, in_long
from test_preload import built, compiled, mpi_of, mpicc_of, passed, served

pytestmark = [pytest.mark.ranks, in_long]

LIMIT_S = 100 * SLOWNESS
LIBRARIES = f"/usr/lib/{os.uname().machine}-linux-gnu"
# No threads; and ranks that wait let others run.
PLAIN = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
REASONS = {"one rank", "between groups", "no data", "first calls"}
NEAR = 1e-6  # relative: with more than two ranks a sum depends on the order
NUMBER = r"[-+]?\d+(?:\.\d*)?(?:[eEdD][-+]?\d+)?"


@dataclass(frozen=True)
class Program:
    """One program with its input; `path` may be a pattern, or a source file to compile."""

    name: str
    package: str  # Debian's
    path: str
    words: tuple
    printed: str  # the pattern of what is compared
    files: dict = field(default_factory=dict, hash=False)  # its input: name -> text
    stdin: str = ""  # a file
    output: str = ""  # the file that it writes instead of printing
    passed: str = ""  # the pattern of its own check, which must be there
    failed: str = r"\bFAILED\b"  # the pattern of what must not be there
    least: float = 0.0  # numbers below are rounding errors
    steady: bool = True  # prints the same twice
    ranks: tuple = (2, 4)
    mpi: str = "openmpi4"

    def __str__(self):
        return self.name


MELT = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 20
run 100
"""

PEPTIDE = """units real
atom_style full
pair_style lj/charmm/coul/long 8.0 10.0 10.0
bond_style harmonic
angle_style charmm
dihedral_style charmm
improper_style harmonic
kspace_style pppm 0.0001
read_data /usr/share/lammps/examples/peptide/data.peptide
neighbor 2.0 bin
neigh_modify delay 5
timestep 2.0
thermo_style multi
thermo 10
fix 1 all nvt temp 275.0 275.0 100.0 tchain 1
fix 2 all shake 0.0001 10 100 b 4 6 8 10 12 14 18 a 31
run 20
"""

# hpcc knows a line by its place; {rows} by 2 is the grid of ranks.
HPCC = """HPLinpack benchmark input file
-
HPL.out  output file name
8        device out
1        problem sizes
240      Ns
1        NBs
32       NBs
0        process mapping
1        process grids
{rows}   Ps
2        Qs
16.0     threshold
1        panel facts
2        PFACTs
1        stopping criteria
4        NBMINs
1        panels
2        NDIVs
1        recursive facts
1        RFACTs
1        broadcasts
1        BCASTs
1        lookahead depths
1        DEPTHs
2        SWAP
64       swapping threshold
0        L1
0        U
1        Equilibration
8        memory alignment
-
0        sizes for PTRANS
-
0        block sizes for PTRANS
-
"""

PW = """&control
  calculation='scf', prefix='silicon', tstress=.true., tprnfor=.true.,
  pseudo_dir='/usr/share/espresso/pseudo', outdir='.' /
&system
  ibrav=2, celldm(1)=10.20, nat=2, ntyp=1, ecutwfc=12.0 /
&electrons
  conv_thr=1.0d-10 /
ATOMIC_SPECIES
 Si 28.086 Si.pz-vbc.UPF
ATOMIC_POSITIONS alat
 Si 0.00 0.00 0.00
 Si 0.25 0.25 0.25
K_POINTS automatic
 2 2 2 1 1 1
"""

NWCHEM = """start h2o
geometry
 O 0 0 0
 H 0 0.757 0.587
 H 0 -0.757 0.587
end
basis; * library sto-3g; end
task scf gradient
"""

# Grids of 1 by 2, 2 by 1 and, with four ranks, 2 by 2 ranks.
LU = """'LU'
'MPI'
'out'
6
1 size
57
50
2 blocks
3 8
1 number of right hand sides
9
1 block of theirs
3
3 grids
1 2 2
2 1 2
1.0         threshold
T
"""

QR = """'QR'
'MPI'
'QR.out'
6
6           factorizations
'QR' 'QL' 'LQ' 'RQ' 'QP' 'TZ'
2           sizes
26 40       M
30 20       N
1 block
4
3
3 grids
1 2 2
2 1 2
5.0         threshold
"""

SEP = """'SEP'
' '
'sep.out'
6
{ranks} processes at most
'N'
' '
'TEST 1'
1 size
30
1 triangle
'U'
2 grids
1 2
{rows} 1
4 8
4 types of matrices
8 9 10 22
'N'
80.0 threshold
-1 tolerance
' '
'End of tests'
-1
"""


def scalapack(name, file, text, **more):
    """A tester of ScaLAPACK's: it compares its residuals with thresholds itself."""
    flavour = more.get("mpi", "openmpi4").rstrip("4")
    return Program(
        f"{name}-{flavour}", "scalapack-mpi-test",
        f"{LIBRARIES}/scalapack/{flavour}-tests/{name}", (),
        r"^ *(?:WALL +)?((?:\d+ +){5,}(?:N )?) *\d.*?(PASSED|FAILED)|^ *(\d+) tests completed.*",
        {file: text}, passed=r" 0 tests completed and failed", **more,
    )  # fmt: skip


THERMO = r"^ +\d+(?: +\S+){5} *$|^(?:TotEng|PotEng|E_dihed|E_coul) .*"
ENERGIES = (r"^! +total energy.*Ry|^ +(?:-?\d\.\d{8} +){3}(?=-?\d)|highest occupied.*|"
            r"(?:one-electron|hartree|xc|ewald) contribution.*Ry|^ +atom +\d+ type .*")

PROGRAMS = (
    Program("hpcc", "hpcc", "hpcc", (), r"^(HPL_\w*[1I]|PTRANS_residual|\w+_Errors|MPIFFT_maxErr)"
            r"=(.*)", {"hpccinf.txt": HPCC}, output="hpccoutf.txt", passed=r"(?m)^Success=1$",
            least=1e-12),
    Program("lammps-melt", "lammps", "lmp", ("-in", "in"), THERMO, {"in": MELT}, passed="Total"),
    Program("lammps-peptide", "lammps-examples", "lmp", ("-in", "in"), THERMO, {"in": PEPTIDE},
            passed="Total wall time"),
    Program("pw", "quantum-espresso", "pw.x", ("-in", "in"), ENERGIES, {"in": PW},
            passed="JOB DONE", least=1e-6),
    Program("pw-pools", "quantum-espresso", "pw.x", ("-nk", 2, "-in", "in"), ENERGIES, {"in": PW},
            passed="JOB DONE", least=1e-6),
    Program("pw-scalapack", "quantum-espresso", "pw.x", ("-nd", 4, "-in", "in"), ENERGIES,
            {"in": PW}, passed="JOB DONE", least=1e-6, ranks=(4,)),
    Program("nwchem", "nwchem", "nwchem", ("in",), r"Total SCF energy.*|nuclear repulsion.*|"
            r"^ +\d [OH] .*", {"in": NWCHEM}, passed="Total SCF energy", least=1e-5,
            steady=False),
    Program("mumps-real", "mumps-test", "/usr/lib/mumps/dsimpletest", (), r"Solution is.*",
            stdin="/usr/lib/mumps/input_simpletest_real", passed="Solution is"),
    Program("mumps-complex", "mumps-test", "/usr/lib/mumps/zsimpletest", (), r"Solution is.*",
            stdin="/usr/lib/mumps/input_simpletest_cmplx", passed="Solution is"),
    Program("petsc", "libpetsc3.18-dev-examples",
            "/usr/share/petsc/*/share/petsc/examples/src/snes/tutorials/ex19.c",
            ("-da_refine", 3, "-pc_type", "mg", "-ksp_type", "fgmres", "-snes_monitor",
             "-ksp_monitor"), r"(?:SNES|KSP).*", passed="Number of SNES iterations = 2",
            least=1e-10),
    scalapack("xdlu", "LU.dat", LU),
    scalapack("xdqr", "QR.dat", QR),
    scalapack("xdsep", "SEP.dat", SEP),
    scalapack("xdlu", "LU.dat", LU, mpi="mpich4", ranks=(2,)),  # its ranks spin
    scalapack("xdqr", "QR.dat", QR, mpi="mpich4", ranks=(2,)),
)  # fmt: skip
NAMED = {program.name: program for program in PROGRAMS}


def executable(program, folder):
    """The path of the program, compiled if its package has the source; else skips the test."""
    found = shutil.which(program.path) or "".join(glob.glob(program.path)[:1])
    if not found:
        pytest.skip(f"{program} is not installed (Debian: {program.package})")
    if not found.endswith(".c"):
        return found
    asked = subprocess.run(["pkg-config", "--cflags", "--libs", "PETSc"], capture_output=True,
                           text=True, timeout=LIMIT_S)  # fmt: skip
    if asked.returncode:
        pytest.skip(f"{program} is not installed (Debian: libpetsc-real-dev)")
    command = [mpicc_of(mpi_of(program.mpi)), "-w", found, "-o", folder / program.name, "-lm"]
    subprocess.run([*command, *shlex.split(asked.stdout)], check=True, timeout=LIMIT_S)
    return str(folder / program.name)


def outcome(program, path, ranks, folder, **environment):
    """Output of the program and what was said beside it, in a folder of its own."""
    folder.mkdir()
    for name, text in program.files.items():
        text = text.replace("{ranks}", str(ranks)).replace("{rows}", str(ranks // 2))
        (folder / name).write_text(text)
    done = subprocess.run(
        mpi_of(program.mpi).command(ranks, path, *program.words), cwd=folder, text=True,
        env={**os.environ, **launched.limits(), **PLAIN, **environment}, timeout=LIMIT_S,
        stdin=open(program.stdin or os.devnull), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    output = (folder / program.output).read_text() if program.output else done.stdout
    assert done.returncode == 0, output[-4000:] + done.stderr
    return output, done.stderr


def preloaded(program):
    """The environment under the drop-in library."""
    library = built(mpicc_of(mpi_of(program.mpi)))
    return {"LD_PRELOAD": str(library), "PACELINE_PRELOAD_SUMMARY": "on"}


def picked(program, output):
    """The pieces of the output that are compared; its own check must have passed."""
    assert re.search(program.passed, output), output[-4000:]
    assert not re.search(program.failed, output), output
    found = re.finditer(program.printed, output, re.MULTILINE)
    rows = [" ".join(filter(None, row.groups())) if row.re.groups else row[0] for row in found]
    assert rows and any(map(numbers, rows)), f"nothing to compare in {output}"
    return rows


def numbers(row):
    """The numbers in a piece of output, Fortran's as well."""
    return [float(word.lower().replace("d", "e")) for word in re.findall(NUMBER, row)]


def near(program, row, other):
    """True where both say the same but for rounding."""
    ours, theirs = numbers(row), numbers(other)
    words = [re.sub(NUMBER, "", text).split() for text in (row, other)]
    return words[0] == words[1] and len(ours) == len(theirs) and all(
        math.isclose(a, b, rel_tol=NEAR, abs_tol=program.least) for a, b in zip(ours, theirs))


def compare(program, ranks, alone, under):
    """Fails where the two print something else; two ranks have one order of adding."""
    rows, others = picked(program, alone), picked(program, under)
    exact = ranks == 2 and program.steady
    assert len(rows) == len(others), (rows, others)
    for row, other in zip(rows, others):
        assert row == other or (not exact and near(program, row, other)), f"{row}\n{other}"


def check_summary(said):
    """Fails if no call was served, or if one was not for a reason that is not expected."""
    counts = served(said)
    assert sum(ours for ours, _ in counts.values()) > 0, f"served nothing: {said}"
    assert {why for _, why in passed(said)} <= REASONS, said


@pytest.mark.parametrize("program, ranks", [
    (program, ranks) for program in PROGRAMS for ranks in program.ranks
], ids=str)  # fmt: skip
def test_prints_the_same(tmp_path, program, ranks):
    environment = preloaded(program)
    path = executable(program, tmp_path)
    alone, _ = outcome(program, path, ranks, tmp_path / "alone")
    under, said = outcome(program, path, ranks, tmp_path / "under", **environment)
    check_summary(said)
    compare(program, ranks, alone, under)


def said_with(folder, calls):
    """The summary of a program of whose calls only these are served."""
    program = NAMED["lammps-melt"]
    path = executable(program, folder)
    environment = preloaded(program) | {"PACELINE_PRELOAD": calls}
    return outcome(program, path, 2, folder / calls, **environment)[1]


def test_a_run_that_serves_nothing_is_noticed(tmp_path):
    said = said_with(tmp_path, "none")
    with pytest.raises(AssertionError, match="served nothing"):
        check_summary(said)


def test_an_unexpected_reason_is_noticed(tmp_path):
    said = said_with(tmp_path, "allreduce")
    with pytest.raises(AssertionError, match="PACELINE_PRELOAD"):
        check_summary(said)


def test_wrong_bits_are_noticed(tmp_path):
    program = NAMED["petsc"]
    path = executable(program, tmp_path)
    mutant = compiled(mpicc_of(mpi_of(program.mpi)), "mutant", "-shared", "-fPIC")
    alone, _ = outcome(program, path, 2, tmp_path / "alone")
    with pytest.raises(AssertionError):
        under, _ = outcome(program, path, 2, tmp_path / "under", LD_PRELOAD=str(mutant))
        compare(program, 2, alone, under)


def test_rounding_is_told_from_wrong_numbers():
    program = dataclasses.replace(NAMED["pw"], least=0.0)
    assert near(program, "energy 1.0000001E+02", "energy 1.0000002E+02")
    assert not near(program, "energy 1.00001E+02", "energy 1.00002E+02")
    assert not near(program, "energy 1.0 Ry", "energy 1.0 eV")
    assert not near(program, "energy 1.0", "energy 1.0 2.0")
