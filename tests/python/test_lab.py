"""The emulated cluster of ./dev lab: nodes apart, ranks of MPIs across them, nothing left behind.

Needs root and namespaces; where both exist nothing here is skipped.
"""

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import machine_files
import pytest
from lab import bench, mpis, network, state
from lab.plan import LabError, Plan
from length import each, in_long

from paceline_bench.measure import arrivals

ROOT = Path(__file__).resolve().parents[2]
RANKS = Path(__file__).with_name("ranks")

pytestmark = pytest.mark.ranks

NODES, RATE = 3, 200e6
FORBIDDEN = state.forbidden()
needs_lab = pytest.mark.skipif(bool(FORBIDDEN), reason=FORBIDDEN)


def host():
    """What of a lab this machine has; whoever else uses it may mount and plug what they like."""
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True).stdout
    names = re.findall(r"^\d+: ([^:@]+)", links, re.MULTILINE)
    known = Path("/etc/hosts").read_text().splitlines()
    mounts = Path("/proc/mounts").read_text().splitlines()
    return {"hosts": [line for line in known if line.startswith("10.77.")],
            "mounts": [line for line in mounts if line.startswith("paceline-lab ")],
            "links": [name for name in names if re.fullmatch(rf"{network.BRIDGE}|port\d+", name)],
            "name": os.uname().nodename}


def networks():
    """The network namespace of every process."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            found[int(path.name)] = os.readlink(path / "ns/net")
        except OSError:  # it has ended
            continue
    return found


def networks_of(lab):
    """Those of the lab and of its nodes."""
    process, found = lab.read()[0], networks()
    nodes = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return {found[int(number)] for number in (process, *nodes)}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """One for all tests here; afterwards this machine is as it was."""
    before = host()
    folder = tmp_path_factory.mktemp("lab") / "lab"
    with state.lab(folder, NODES) as found:
        yield found
        ours = networks_of(found)
    assert len(ours) == NODES + 1
    assert not ours & set(networks().values())
    assert not folder.exists()
    assert host() == before


def run(lab, *words, node=0, environment=None, limit_s=60):
    """(status, stdout and stderr) of a command on a node."""
    read, write = os.pipe()
    said = []

    def hear():
        with os.fdopen(read, errors="replace") as stream:
            said.append(stream.read())

    listener = threading.Thread(target=hear)
    listener.start()
    try:
        status = lab.run(node, [str(word) for word in words], environment or dict(os.environ),
                         descriptors=(0, write, write), limit_s=limit_s, sweep=False)
    finally:
        os.close(write)
        listener.join(5)
    return status, "".join(said)


def printed(lab, *words, **keywords):
    """What it has printed, if it went well."""
    status, text = run(lab, *words, **keywords)
    assert status == 0, text
    return text


# --- nodes ----------------------------------------------------------------------------------------


@needs_lab
def test_nodes_share_neither_names_nor_folders_nor_processes(lab):
    script = "hostname; ls /tmp /dev/shm; touch /tmp/mine /dev/shm/mine; ls /sys/class/net"
    found = [printed(lab, "sh", "-c", script, node=node).split() for node in range(NODES)]
    assert [words[0] for words in found] == ["node0", "node1", "node2"]
    assert not any("mine" in words for words in found)
    assert all(words[-2:] == ["eth0", "lo"] for words in found)
    for kind in ("ipc", "pid"):
        own = os.readlink(f"/proc/self/ns/{kind}")
        seen = [printed(lab, "readlink", f"/proc/self/ns/{kind}", node=node).strip()
                for node in range(NODES)]
        assert len({own, *seen}) == NODES + 1, (kind, own, seen)


@needs_lab
def test_names_resolve_and_nobody_outside_is_there(lab):
    assert printed(lab, "getent", "hosts", "node2").split() == ["10.77.0.3", "node2"]
    status, _ = run(lab, "getent", "hosts", "example.org")
    assert status


@needs_lab
def test_links_are_as_fast_as_asked_for(lab):
    """Never faster; how much slower depends on who else uses the machine."""
    said = {}

    def serve():
        said["rate"] = float(printed(lab, sys.executable, RANKS / "stream.py", "serve", 5000))

    server = threading.Thread(target=serve)
    server.start()
    sent = printed(lab, sys.executable, RANKS / "stream.py", "send", "node0", 5000, node=1)
    server.join()
    assert 0 < said["rate"] < 1.02 * RATE
    assert sent.strip() == network.CONGESTION


@needs_lab
def test_what_a_command_leaves_is_ended_with_it(lab):
    status = lab.run(1, ["sh", "-c", "sleep 1000 & exit 3"], dict(os.environ))
    assert status == 3
    assert "sleep" not in printed(lab, "ps", "ax", node=1)
    status, _ = run(lab, "sleep", "1000", limit_s=0.5)
    assert status == state.TIMED_OUT


@needs_lab
def test_a_command_is_as_urgent_as_who_asks(lab):
    folder = lab.folder
    script = f"import os, sys; sys.path.insert(0, '{ROOT}/tools'); os.nice(7)\n" \
        f"from lab.state import State; State('{folder}').run(1, ['nice'], dict(os.environ))"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert int(said.stdout) == min(19, os.nice(0) + 7), said.stderr


@needs_lab
def test_one_lab_at_a_time_and_down_at_any_time(lab, tmp_path):
    with pytest.raises(LabError, match="a lab of 3 nodes is up"):
        lab.up(2, 1, RATE, "200mbit")
    other = state.State(tmp_path / "other")
    assert other.down() is False
    with pytest.raises(LabError, match="no lab is up"):
        other.plan()
    other.folder.mkdir()
    text = {"process": os.getpid(), "begun": "0", "plan": lab.plan().to_json()}
    other.file.write_text(json.dumps(text))  # of a process whose number is somebody else's now
    assert other.down() is False and not other.folder.exists()


@needs_lab
def test_a_lab_that_cannot_start_leaves_nothing(tmp_path, monkeypatch):
    before = host()
    monkeypatch.setattr(network, "MTU", 9)  # no interface has packets so short
    with pytest.raises(LabError, match="mtu"):
        state.State(tmp_path / "lab").up(2, 1, RATE, "200mbit")
    assert not (tmp_path / "lab").exists() and host() == before


def test_a_lab_that_ends_before_it_is_written_down_was_none(tmp_path):
    """As on a busy machine: its process has ended by the time its beginning is asked for."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    lab = state.State(tmp_path / "lab")
    lab.folder.mkdir()
    plan = Plan(2, 1, RATE, "200mbit", str(lab.folder / "shared"))
    text = {"process": ended.pid, "begun": state.begun(ended.pid), "plan": plan.to_json()}
    lab.file.write_text(json.dumps(text))
    with pytest.raises(LabError, match="no lab is up"):
        lab.plan()
    assert lab.down() is False and not lab.folder.exists()


@needs_lab
def test_the_first_error_is_told_where_what_is_left_does_not_end(tmp_path, monkeypatch, capsys):
    def stays(self):
        raise LabError("process 7 has not ended")

    monkeypatch.setattr(network, "MTU", 9)
    lab = state.State(tmp_path / "lab")
    with monkeypatch.context() as now, pytest.raises(LabError, match="mtu"):
        now.setattr(state.State, "down", stays)
        lab.up(2, 1, RATE, "200mbit")
    assert "process 7 has not ended" in capsys.readouterr().err
    lab.down()


def test_rates_are_those_of_tc():
    assert network.rate_of("200mbit") == 200e6 and network.rate_of("1.5Gbit") == 1.5e9
    for wrong in ("200", "200mbps", "0mbit", "-1mbit"):
        with pytest.raises(ValueError, match="is no rate"):
            network.rate_of(wrong)


def test_what_launchers_tell_their_own_goes_to_no_other_node():
    told = {"PMIX_RANK": "1", "PRTE_LAUNCHED": "1", "PMI_FD": "3", "PATH": "p", "FI_X": "tcp"}
    assert mpis.of_the_user(told) == {"PATH": "p", "FI_X": "tcp"}


# --- ranks ----------------------------------------------------------------------------------------


def there():
    """The MPIs that are installed; ./dev mpi brings three, and the others where it can."""
    return ["mpich5", "mpich5-ucx", "openmpi5", *(name for name in ("openmpi4", "impi")
                                    if mpis.MPIS[name].mpiexec.exists())]


@needs_lab
@each("name", ["mpich5", "openmpi5"], [name for name in there() if name[-1:] != "5"])
def test_ranks_of_an_mpi_cross_the_links(lab, name):
    environment = {**os.environ, **mpis.environment(name, lab.plan().folder, 1)}
    words = mpis.words(name, NODES, [sys.executable, str(RANKS / "in_lab.py")])
    text = printed(lab, *words, environment=environment)
    ranks = [json.loads(one) for one in re.findall(r"{[^{}]*}", text)]  # maybe two on a line
    assert sorted(rank["rank"] for rank in ranks) == list(range(NODES)), text
    assert {rank["node"] for rank in ranks} == {"node0", "node1", "node2"}
    assert all(rank["ours"] and rank["hosts"] and rank["ranks"] == NODES for rank in ranks)


@in_long
@needs_lab
@pytest.mark.parametrize("name", there())
def test_scattered_ranks_lie_on_the_nodes_in_turn(lab, name):
    say = ["sh", "-c", "echo ${OMPI_COMM_WORLD_RANK:-$PMI_RANK}:$(hostname)"]
    for scattered, node_of in ((False, [0, 0, 1, 1, 2, 2]), (True, [0, 1, 2, 0, 1, 2])):
        own = mpis.environment(name, lab.plan().folder, 2, scattered=scattered)
        text = printed(lab, *mpis.words(name, 6, say), environment={**os.environ, **own})
        found = sorted(re.findall(r"(\d):node(\d)", text))  # maybe two on a line
        assert found == [(str(rank), str(node)) for rank, node in enumerate(node_of)], text


def measured(lab, ppn=1, rate=RATE, size="1MiB", **variables):
    """(status, what was said, records) of a short benchmark of three ranks in MPICH 5.

    ppn: what mpiexec is told; rate: what the benchmark is told."""
    environment = bench.variables("mpich5", lab.plan(), ppn, spin=False) | variables
    about = {**bench.description(lab.plan(), 1, False), "rate": rate}
    words = bench.words("mpich5", lab, about, NODES, ["allreduce", "--sizes", size, "--repeats",
                        "3", "--algorithm", "ring"], records=True)  # fmt: skip
    status, text = run(lab, *words, environment=environment)
    file = lab.inside(lab.plan().file(bench.RECORDS))
    return status, " ".join(text.split()), json.loads(file.read_text())["records"]


@needs_lab
def test_figures_between_nodes(lab):
    status, text, records = measured(lab)
    assert status == 0, text
    assert [record["variant"] for record in records] == ["ring", "mpi"]
    assert all(0 < record["fraction_of_bound"] <= 1.02 for record in records)
    assert records[0]["bound_us"] == pytest.approx(2 * 2 / 3 * (1 << 20) * 8 / RATE * 1e6)
    assert all(record["messages"] is None for record in records)


@needs_lab
def test_who_sets_nothing_chooses_for_these_links_and_again_so(lab):
    environment = {**os.environ, **mpis.environment("mpich5", lab.plan().folder, 1),
                   "PACELINE_MACHINE": "", "XDG_CACHE_HOME": str(lab.plan().file("cache"))}
    words = mpis.words("mpich5", NODES, [sys.executable, str(RANKS / "machine_said.py")])
    found = []
    for _ in range(2):
        text = printed(lab, *words, environment=environment)
        found.append(set(re.findall(r"said: [^\n]*?kept in [^)\n]*\)", text)))
        assert len(found[-1]) == 1, text
        assert text.count("measured the links between 3 nodes") == (len(found) == 1), text
        file = lab.inside(lab.plan().file("cache")) / "paceline/machine"
        machine_files.set_samples(file, "0")   # others use this machine
    assert found[0] == found[1]
    rate = float(re.search(r", ([0-9.e+-]+) Gbit/s", found[0].pop())[1])
    assert rate < 1.2 * RATE / 1e9   # whatever else goes on; 100 are usual


@in_long
@needs_lab
def test_messages_of_short_calls_are_counted(lab):
    status, text, (ours, theirs) = measured(lab, size="6KiB")
    assert status == 0, text
    assert ours["messages"] == NODES * 2 * (NODES - 1)
    assert 2 * (NODES - 1) <= ours["rounds"] <= ours["messages"]  # in few calls some wait by chance
    assert theirs["messages"] >= 2 * (NODES - 1) and theirs["rounds"] >= 2
    assert "messages rounds" in text


# --- ranks that come at different times -----------------------------------------------------------

SIZE = 256 << 10
MESSAGE_US = 8e6 * SIZE / RATE


def arrived(lab, pattern, *words, collective="allreduce", ppn=2, **variables):
    """Of a short benchmark whose ranks come so, two on each node: as measured() does."""
    plan = lab.plan()
    words = bench.words("mpich5", lab, bench.description(plan, ppn, False), plan.nodes * ppn,
                        [collective, "--repeats", "3", "--sizes", str(SIZE), "--arrival", pattern,
                         *words], records=True)  # fmt: skip
    environment = bench.variables("mpich5", plan, ppn, spin=False) | variables
    status, text = run(lab, *words, environment=environment)
    file = lab.inside(plan.file(bench.RECORDS))
    found = json.loads(file.read_text())["records"] if file.exists() else []
    return status, " ".join(text.split()), {record["variant"]: record for record in found}


@in_long
@needs_lab
def test_a_rank_comes_late_between_nodes(lab):
    status, text, found = arrived(
        lab, "late:1:4", "--algorithm", "auto,hierarchical_rsa,multilane_tail_direct,sorted_chain",
        "--predict", "static:1", "--no-predict")
    assert status == 0, text
    off = "paceline, predict off"
    assert list(found) == ["paceline", "hierarchical_rsa", "multilane_tail_direct", off, "mpi"]
    for record in found.values():
        assert record["message_us"] == pytest.approx(MESSAGE_US)
        # Nothing brings the late rank's numbers to the other nodes in less than a message's time;
        # below 1 MiB some pass at once.
        assert record["time_per_message"] > 0.9
        assert record["in_call_per_message"] == record["in_call_us_mean"] / record["message_us"]
        assert record["imbalance_us_median"] >= 2 * MESSAGE_US  # others may be late as well
        assert record["calls"] == 3 and record["arrival"] == "late:1:4"
    assert [record["predict"] for record in found.values()] == [*["static:1"] * 3, "off", None]
    assert "arrival=static: taken for late: 1" in found["paceline"]["choice"]
    assert "taken for late" not in found[off]["choice"]
    assert "sorted_chain at 256 KiB: RefusalError" in text and "PACELINE_NUMBERS=fast" in text
    assert "n/rate (200mbit; 256 KiB: 10.5 ms)" in text


@in_long
@needs_lab
def test_who_comes_late_is_learned_before_anything_is_timed(tmp_path, tmp_path_factory):
    trace = tmp_path / "trace.json"  # where no node would see it
    trace.write_text(json.dumps({"arrivals_s": [[0, 0, 0, 0.04]]}))
    folder = tmp_path_factory.mktemp("four") / "lab"
    with state.lab(folder, 4) as lab:  # two on each of three gain nothing by it
        status, text, found = arrived(lab, f"trace:{trace}", "--predict", "auto", ppn=1,
                                      PACELINE_MACHINE="alpha_us=50,gbit_per_s=0.2")
    assert status == 0, text
    calls = int(re.search(r"arrivals, of (\d+) calls", found["paceline"]["choice"])[1])
    assert calls >= arrivals.LEARNING - 4
    assert found["paceline"]["imbalance_us_median"] >= 20e3


@needs_lab
def test_what_cannot_be_measured_with_a_pattern_between_nodes(lab):
    status, text, found = arrived(lab, "late:1:1", collective="barrier")
    assert status == 2 and not found and "use trace:FILE" in text
    status, text, found = arrived(lab, "late:6:1")
    assert status == 2 and not found and "they are 0 to 5" in text


# --- what breaks the links ------------------------------------------------------------------------


@in_long
@needs_lab
@pytest.mark.parametrize("mutant, why", [
    ({"ppn": 3}, "the ranks ran on 1 nodes and not on 3"),
    ({"ppn": 3, "PYTHONPATH": str(RANKS / "pretending")}, "node0 sent 0 bytes a call"),
    ({"rate": RATE / 4}, "nothing can be faster than 1"),
])  # fmt: skip
def test_figures_that_break_the_links_are_refused(lab, mutant, why):
    status, text, records = measured(lab, **mutant)
    assert status == 1 and records == []
    assert text.count("refused:") == 2 and text.count(why) == 2, text
