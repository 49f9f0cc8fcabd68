"""Ranks that count as being on several nodes: what goes by nodes, rings and chains node by node."""

import re
import shutil
import subprocess

import launched
import mpis
import pytest
from length import each, in_long

pytestmark = pytest.mark.ranks

STARTS = [m for m in mpis.found() if m.family == "mpich"]
FEW = ["0,1,0", "0,1,1,0,1"]
MORE = ["0,1,0,1", "0,1,1,0", "0,0,1,1", "0,1,2,0,1,2", "0,1"]


@each("nodes", FEW, MORE)
def test_nodes(nodes):
    """Equally many ranks on each node, side by side and in turn, and not equally many."""
    settings = (*STARTS[-1].environment().items(), ("NODES", nodes))
    assert launched.failures("node_checks", nodes.count(",") + 1, *settings, nodes=nodes) == {}


@each("nodes", ["0,1,2,3,3"], ["0,1,2,3,0", "0,0,1,2,3,3"])
def test_late_rank(nodes):
    """Ranks that share nodes learn that one of them is late, and expect it all at once."""
    settings = (*STARTS[-1].environment().items(), ("NODES", nodes), ("PACELINE_PREDICT", "auto"),
                ("PACELINE_MACHINE", "1e-5,4e-8,0"))
    assert launched.failures("late_node_checks", nodes.count(",") + 1, *settings,
                             nodes=nodes) == {}


@each("late", ["4"], ["4,3", "4,1"])
def test_named_late_rank(late):
    """Ranks that share nodes expect those that they were told of; not two of four nodes, though."""
    wanted = "multilane" if late == "4,1" else "multilane_tail_as_ring"
    settings = (*STARTS[-1].environment().items(), ("PACELINE_PREDICT", f"static:{late}"),
                ("PACELINE_MACHINE", "1e-5,4e-8,0"), ("WANTED", wanted))
    assert launched.failures("named_late_node_checks", 5, *settings, nodes="0,1,2,3,3") == {}


@each("nodes", ["0,1,1,1"], ["0,0,1,1", "0,1,0,1"])
def test_disagreeing_ranks(nodes):
    """Inside a node, where flags tell, and between nodes, where messages do."""
    settings = STARTS[-1].environment().items()
    assert launched.failures("mismatch_checks", nodes.count(",") + 1, *settings, nodes=nodes) == {}


def what_others_hear(nodes, what, grace_s):
    """Of the last of four ranks: the two errors of each of the others."""
    env = {**STARTS[-1].environment(), "PACELINE_ALGORITHM": "allreduce=hierarchical",
           "PACELINE_TIMEOUT_MS": "5000", "PACELINE_STOPPED_MS": "0"}  # fmt: skip
    script = launched.RANKS / "failing.py"
    run = launched.start("on_nodes.py", 4, nodes, script, what, env=env, grace_s=grace_s)
    assert "Traceback" not in run.text(), run.text()
    for rank in range(3):
        lines = re.findall(r"^\w+ \d+\.\d\d .*", run.text(rank, "stdout"), re.MULTILINE)
        assert len(lines) == 2, run.text()
        yield from lines


@each("nodes", ["0,1,1,1"], ["0,0,0,1", "0,0,1,1", "0,1,0,1", "0,0,1,2", "0,1,1,2"])
def test_killed_rank(nodes):
    """The last one: every other rank hears of it, with its name. Ranks of its node see that it has
    died; where it is alone there it does not answer, which those learn who wait in memory, too."""
    told = "RankLost " if nodes.count(nodes[-1]) > 1 else "TimeoutError "
    for line in what_others_hear(nodes, "killed", 50):
        assert line.startswith(told) and "rank 3" in line, line


@each("nodes", [], ["0,0,0,1", "0,1,1,1", "0,0,1,1", "0,1,0,1", "0,0,1,2", "0,1,1,2"])
def test_stopped_rank(nodes):
    """The last one, which is alive and does nothing: every other rank names it as its time is up,
    and how far it has come, if anybody of its node can see that."""
    seen = r"rank 3 (does not answer|has last left allreduce #1)"
    for line in what_others_hear(nodes, "stopped", 4):
        assert line.startswith("TimeoutError ") and re.search(seen, line), line


# Before an MPI: the last rank is killed as it makes this call.
DIES = """
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>

typedef long Any;
int NAME(Any a, Any b, Any c, Any d, Any e, Any f, Any g, Any h) {
  if (atoi(getenv("PACELINE_RANK")) == atoi(getenv("PACELINE_RANKS")) - 1) raise(SIGKILL);
  int (*next)(Any, Any, Any, Any, Any, Any, Any, Any) = dlsym(RTLD_NEXT, NAMED);
  return next(a, b, c, d, e, f, g, h);
}
"""


@each("call", ["PMPI_Init_thread"], ["PMPI_Allgatherv", "PMPI_Comm_dup"])
def test_rank_that_dies_while_ranks_start(tmp_path, call):
    """An MPI waits for it for ever; the other ranks end long before their limit, and name it."""
    gcc = shutil.which("gcc")
    if not gcc:
        pytest.skip("gcc has no compiler")
    mpi = STARTS[-1]
    library, source = tmp_path / "libmpi.so.12", tmp_path / "dies.c"
    source.write_text(DIES)
    subprocess.run([
        gcc, "-shared", "-fPIC", "-D_GNU_SOURCE", f"-DNAME={call}", f'-DNAMED="{call}"', source,
        "-o", library, "-Wl,--no-as-needed", mpi.library, f"-Wl,-rpath,{mpi.library.parent}",
    ], check=True)  # fmt: skip
    env = {**mpi.environment(), "PACELINE_MPI": str(library), "PACELINE_START_TIMEOUT_MS": "60000"}
    script = launched.RANKS / "count_nodes.py"
    run = launched.start("on_nodes.py", 3, "0,1,1", script, env=env, grace_s=30)
    late = "MPI has not started" if "Init" in call else "the ranks have not met over MPI"
    for rank in range(2):
        assert (f"rank {rank}: rank 2 is lost: its process has ended, and {late}."
                in run.text(rank)), run.text(rank)
    assert "nodes" not in run.text(stream="stdout"), run.text()


@in_long
def test_futures():
    pytest.importorskip("torch")
    found = launched.failures("future_checks", 2, *STARTS[-1].environment().items(), nodes="0,1")
    assert found == {}


def test_checks_that_are_told_of_other_nodes_fail():
    settings = (*STARTS[-1].environment().items(), ("NODES", "0,1,0,1"))
    found = launched.failures("node_checks", 4, *settings, nodes="0,0,0,1")
    assert "what_is_said" in found, found
