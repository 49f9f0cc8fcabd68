"""The command line: every command runs, says what it should, and ends with the right status."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import click
import pytest
from launched import flat

from paceline import _core, draw, trace
from paceline.cli import cli, commands
from paceline_bench.cli.bench_steps import STEPS
from paceline.cli.common import Sizes, checked_file
from paceline.cli.draw import Arrivals

pytestmark = pytest.mark.ranks

ROOT = Path(__file__).parents[2]


# --- all commands -------------------------------------------------------------------------------


def test_help_lists_every_command(paceline):
    status, out, _ = paceline("--help")
    assert status == 0
    for name, (_, sentence) in commands().items():
        assert name in out and sentence in out
        assert sentence.endswith(".")


@pytest.mark.parametrize("name", commands())
def test_every_command_has_help_for_strangers(paceline, name):
    status, out, _ = paceline(name, "--help")
    assert status == 0
    first = flat(cli.get_command(None, name).help.split("\n\n")[0])
    assert first == commands()[name][1], "the list and the help say the same"
    for option in cli.get_command(None, name).params:
        described = option.param_type_name == "argument" or option.help
        assert described, f"{name} {option.name} has no help"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("arguments", [
    ["options"], ["explain", "allreduce"], ["draw", "allreduce", "--segments", "4"],
    ["verify", "--max-ranks", "3"], ["explain", "-n", "16", "--machine", "edr-100g"],
    ["explain", "--ranks", "100", "--machine", "ethernet-10g,ranks_per_node=4"],
    ["explain", "--keys", "inception-bn", "--machine", "edr-100g"], ["explain", "--help"],
])  # fmt: skip
def test_output_fits_the_terminal(paceline, monkeypatch, width, arguments):
    monkeypatch.setenv("COLUMNS", str(width))
    status, out, _ = paceline(*arguments)
    assert status == 0
    sentences = re.compile(r"rejected|worlds proven")  # lines for grep stay whole
    assert all(len(line) <= width for line in out.splitlines() if not sentences.search(line))


def test_as_a_module():
    done = subprocess.run([sys.executable, "-m", "paceline", "--version"], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("paceline ")
    wrong = subprocess.run([sys.executable, "-m", "paceline", "nonsense"], capture_output=True,
                           text=True, timeout=60)
    assert wrong.returncode == 2 and "nonsense" in wrong.stderr


def test_version(paceline):
    assert re.fullmatch(r"paceline \d+\.\d+\.\d+\S*\n", paceline("--version")[1])


@pytest.mark.parametrize("arguments, words", [
    (["nonsense"], "nonsense"),
    (["verify", "allgahter"], "allgahter"),
    (["verify", "--algorithm", "ring"], "--algorithm needs a COLLECTIVE"),
    (["verify", "allreduce", "--fused"], "pass --ranks, too"),
    (["verify", "alltoall", "--uneven"], "--uneven describes one world"),
    (["verify", "allreduce", "--ranks", "3"], "needs a COLLECTIVE and --algorithm"),
    (["verify", "allreduce", "--algorithm", "rong"], "recursive_doubling"),
    (["verify", "broadcast", "--algorithm", "chain", "--ranks", "3", "--root", "3"], "0 to 2"),
    (["draw", "allreduce", "--root", "9"], "0 to 3"),
    (["draw", "allreduce", "--size", "1mb"], "1MiB or 2GB"),
    (["draw", "allreduce", "--arrivals", "soon"], "3=1ms"),
    (["draw", "allreduce", "--arrivals", "4=1ms"], "there are 4 ranks"),
    (["draw", "allreduce", "--machine", "fast"], "edr-100g"),
    (["explain", "allreduce", "--algorithm", "rong"], "ring"),
    (["explain", "allreduce", "--algorithm", "ring", "--radix", "3"], "has no radix"),
    (["explain", "allreduce", "--radix", "3"], "name one with algorithm="),
    (["explain", "allreduce", "--segments", "5000"], "--segments"),
    (["draw", "allreduce", "--segments", "4 miles"], "4 miles"),
    (["explain", "--radix", "3"], "need a COLLECTIVE"),
    (["explain", "--machine", "fast"], "edr-100g"),
    (["draw", "allreduce", "--algorithm", "ring", "--blocks", "3"], "has no blocks"),
    (["verify", "allreduce", "--algorithm", "ring", "--ranks", "3", "--radix", "3"], "no radix"),
    (["verify", "allreduce", "--in-step"], "pass --ranks, too"),
    (["bench", "allreduce", "--radix", "3"], "name one with algorithm="),
    (["bench", "allreduce", "--algorithm", "ring,circulant", "--radix", "3"], "ring: radix is 3"),
    (["bench", "allreduce", "--sizes", "8..4"], "a smaller size"),
    (["bench", "allreduce", "--algorithm", "pairwise"], "binomial"),
    (["bench", "allreduce", "--segments", "x"], "0 to 4096"),
    (["bench", "allreduce", "--op", "bit_or"], "is not defined for"),
    (["bench", "allreduce", "--verdict"], "--against gloo"),
    (["bench", "allreduce", "--against", "gloo", "--verdict", "--launches", "9"], "at least 10"),
    (["bench", "allreduce", "--against", "gloo", "--through", "native"], "--through python"),
    (["bench", "allreduce", "--batch", "4"], "--through native"),
    (["bench", "allreduce", "--mpi-set", "A=1"], "--against mpi"),
    (["bench", "broadcast", "--separate"], "with allreduce and reduce"),
    (["bench", "reduce", "--shared"], "no algorithm for shared buffers"),
    (["bench", "allreduce", "--arrival", "soon"], "uniform:MIF"),
    (["bench", "allreduce", "--arrival", "late:2:1"], "0 to 1"),
    (["bench", "allreduce", "--arrival", "uniform:10", "--cold"], "--cold does not go"),
    (["bench", "allreduce", "--arrival", "trace:/nowhere.json"], "no profile"),
    (["bench", "allreduce", "--predict", "off", "--no-predict"], "already measures without "
                                                                 "prediction"),
    (["bench", "allreduce", "--json", "/no/such/place/o.json"], "/no/such/place is no folder"),
    (["bench", "store", "--json", "/no/such/place/o.json"], "/no/such/place is no folder"),
    (["bench", "overlap", "--json", "/no/such/place/o.json"], "/no/such/place is no folder"),
    (["report", "ring", "--html", "/no/such/place/o.html"], "/no/such/place is no folder"),
    (["profile"], "after --"),
    (["profile", "--read", "/nowhere"], "no folder /nowhere"),
    (["profile", "--read", "/tmp", "--machine", "fast"], "edr-100g"),
    (["run", "true"], "--ranks"),
    (["run", "-n", "0", "true"], "--ranks"),
    (["run", "-n", "1", "--timeout", "5", "true"], "Did you mean one of: '--start-timeout-ms', "),
    (["run", "-n", "1", "--timeout-ms", "soon", "true"], "--timeout-ms is 'soon'"),
    (["run", "-n", "1", "--progress", "nobody", "true"], "caller or thread"),
])  # fmt: skip
def test_wrong_calls_are_told_what_is_right(paceline, arguments, words):
    status, out, err = paceline(*arguments)
    assert status == 2
    assert words in flat(err)
    assert "Traceback" not in err


def commands_below(command):
    """It, and those that it has."""
    yield command
    for below in getattr(command, "commands", {}).values():
        yield from commands_below(below)


def test_every_file_that_is_written_has_a_folder_before_work_begins():
    every = [below for name in commands() for below in commands_below(cli.get_command(None, name))]
    written = [(command.name, option) for command in (*every, *STEPS.values())
               for option in command.params
               if isinstance(option.type, click.Path) and not option.type.dir_okay
               and not option.type.exists]
    assert len(written) > 12
    for name, option in written:
        assert option.callback is checked_file, f"{name} {option.opts[0]}: use file_option"


# --- options ------------------------------------------------------------------------------------


def test_options_page_is_up_to_date(paceline):
    _, out, _ = paceline("options", "--markdown")
    page = (ROOT / "docs/options.md").read_text(encoding="utf-8")
    assert page == out, "out of date; run: paceline options --markdown > docs/options.md"


def test_options_page_does_not_depend_on_the_environment(paceline, monkeypatch):
    before = paceline("options", "--markdown")[1]
    monkeypatch.setenv("PACELINE_TIMEOUT_MS", "5")
    assert paceline("options", "--markdown")[1] == before


def test_options_show_where_a_value_comes_from(paceline, monkeypatch):
    monkeypatch.setenv("PACELINE_SHM_BYTES", "64MiB")
    status, out, _ = paceline("options")
    assert status == 0
    line = next(line for line in out.splitlines() if line.startswith("shm_bytes"))
    assert line.split()[1:5] == ["64", "MiB", "variable", "32MiB"]


def test_options_show_what_is_wrong(paceline, monkeypatch):
    monkeypatch.setenv("PACELINE_WINDOW", "wide")
    monkeypatch.setenv("PACELINE_TIMEOUT", "5")
    status, out, _ = paceline("options")
    assert status == 1
    assert "PACELINE_WINDOW is 'wide'" in flat(out)
    assert "PACELINE_TIMEOUT is set, but no option has that name" in flat(out)


# --- info ---------------------------------------------------------------------------------------


def test_info_is_one_paste_without_secrets(paceline, monkeypatch):
    monkeypatch.setenv("PACELINE_SECRET", "geheim")
    monkeypatch.setenv("AWS_SECRET", "geheim")
    monkeypatch.setenv("PACELINE_TIMEOUT_MS", "5000")
    monkeypatch.setenv("PACELINE_TIEMOUT", "geheim")
    status, out, _ = paceline("info")
    assert status == 0 and "geheim" not in out
    assert re.search(r"^options +PACELINE_TIMEOUT_MS=5000$", out, re.MULTILINE)
    found = json.loads(paceline("info", "--json")[1])
    assert "geheim" not in str(found)
    assert found["options"] == {"PACELINE_TIMEOUT_MS": "5000"}
    assert found["unknown options"] == ["PACELINE_TIEMOUT"]
    assert found["kernels"] == _core.kernel_targets()[-1]
    assert re.fullmatch(r"[0-9a-f]{7,}\+?", found["commit"])
    assert list(found) == [line[:16].strip() for line in out.splitlines()]


# --- draw --------------------------------------------------------------------------------------


def test_draw_writes_picture_and_events(paceline, tmp_path):
    svg, events = tmp_path / "ring.svg", tmp_path / "ring.json"
    status, out, _ = paceline(
        "draw", "allreduce", "--algorithm", "ring", "--ranks", 4, "--segments", 4,
        "--arrivals", "3=1ms", "--svg", svg, "--json", events)
    assert status == 0
    assert "allreduce/ring, 4 ranks, 1 MiB, 4 segments" in out and "simulated" in out
    assert ElementTree.fromstring(svg.read_text(encoding="utf-8")).tag.endswith("svg")
    found = trace.from_json(events.read_text(encoding="utf-8"))
    assert found.arrival_s == [0, 0, 0, pytest.approx(1e-3)]
    assert found.span_s > 1e-3


def test_draw_takes_the_choice_of_a_call(paceline):
    for collective, size in (("broadcast", 8 << 20), ("allreduce", 1024), ("alltoall", 4096)):
        name = _core.choose(collective, 8, size, machine="edr-100g")["algorithm"]
        _, out, _ = paceline("draw", collective, "-n", 8, "--size", size)
        assert out.startswith(f"{collective}/{name}, 8 ranks")


def test_draw_measured_shows_every_rank(paceline, tmp_path):
    events = tmp_path / "measured.json"
    status, out, err = paceline(
        "draw", "allreduce", "-n", 2, "--size", "256KiB", "--algorithm", "ring", "--segments", 2,
        "--arrivals", "1=50ms", "--measured", "--json", events)
    assert status == 0, err
    assert "measured:" in out
    found = trace.from_json(events.read_text(encoding="utf-8"))
    assert found.title == "allreduce/ring, 2 ranks, 256 KiB, 2 segments, window 2"
    assert 0.03 < found.arrival_s[1] - found.arrival_s[0]   # others may use the machine
    for rank in range(2):
        kinds = {event.activity for event in found.events if event.rank == rank}
        assert {"send", "recv", "reduce"} <= kinds
    assert {event.segment for event in found.events} == {0, 1}
    assert draw.to_svg(found, 800)


def test_arrivals():
    def read(text):
        return Arrivals().convert(text, None, None)

    assert read("0,1ms,250us,0.5s") == {0: 0, 1: 1e-3, 2: pytest.approx(250e-6), 3: 0.5}
    assert read("3=1ms,5=2") == {3: 1e-3, 5: 2}


def test_sizes():
    def read(text):
        return Sizes().convert(text, None, None)

    assert read("8,1KiB, 2MiB") == [8, 1024, 2 << 20]
    assert read("8..64") == [8, 16, 32, 64]
    assert read("8..100") == [8, 16, 32, 64, 100]
    assert read("1KiB..1MiB*32,3") == [1024, 32768, 1 << 20, 3]
    assert read("5..5") == [5]


def test_draw_takes_knobs(paceline, tmp_path):
    events = tmp_path / "events.json"
    paceline("draw", "broadcast", "--algorithm", "circulant", "--blocks", 5, "-n", 3, "--json",
             events)
    found = trace.from_json(events.read_text(encoding="utf-8"))
    assert sum(event.activity == "send" for event in found.events) == 2 * 5


# --- what starts ranks --------------------------------------------------------------------------


def command(*arguments):
    """Runs the command in a process of its own, as a user does."""
    program = "import sys; from paceline.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True,
        timeout=100)


def test_run_sets_options_and_hands_on_the_status():
    program = ("import os, sys, paceline; c = paceline.init(); "
               "print(c.rank, c.size, os.environ['PACELINE_TIMEOUT_MS']); sys.exit(3 * c.rank)")
    found = command("run", "-n", 2, "--prefix", "--timeout-ms", "0060000", sys.executable, "-c",
                    program)
    assert found.returncode == 3, found.stderr
    assert sorted(found.stdout.splitlines()) == ["[0] 0 2 60000", "[1] 1 2 60000"]


def test_run_leaves_the_options_of_the_program_alone():
    found = command("run", "-n", 1, sys.executable, "-c", "import sys; print(sys.argv)", "--prefix",
                    "-n", "7", "--help")
    assert found.stdout == "['-c', '--prefix', '-n', '7', '--help']\n"


def test_the_guides_example_runs(tmp_path):
    page = (ROOT / "docs/guide/without-torch.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    example = next(block for block in blocks if "paceline.init()" in block)
    script = tmp_path / "example.py"
    script.write_text(example, encoding="utf-8")
    found = command("run", "-n", 2, "--prefix", script)
    assert found.returncode == 0, found.stderr
    assert sorted(found.stdout.splitlines()) == [
        "[0] rank 0 of 2: [3. 3. 3. 3.]", "[1] rank 1 of 2: [3. 3. 3. 3.]"]


def test_readme_commands_exist():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    for words in re.findall(r"`paceline ([a-z]+)[^`]*`", page):
        assert words in commands(), f"README speaks of `paceline {words}`"
    for link in re.findall(r"\]\(([^)]+)\)", page):
        if not link.startswith("http"):
            assert (ROOT / link).exists(), f"README links to {link}"


def test_broken_pipe_is_no_traceback():
    found = subprocess.run(
        f"{sys.executable} -c 'import sys; from paceline.cli import main; sys.exit(main())' "
        "options | head -n 1", shell=True, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in found.stderr
