"""torch.distributed over Paceline: its collectives, what is built on them, and how it fails."""

import os
import subprocess
import sys

import launched
import pytest
from length import each, param

pytestmark = pytest.mark.ranks

pytest.importorskip("torch")

AUTOLOAD = ("TORCH_DEVICE_BACKEND_AUTOLOAD", "1")


@pytest.mark.parametrize("name", [*launched.names("torch_checks"), "end"])
@each("ranks", [2], [1, 3])
def test_collectives(name, ranks):
    launched.expect("torch_checks", name, ranks)


@pytest.mark.parametrize("name", [*launched.names("point_checks"), "end"])
@each("ranks", [3], [2, 4])
def test_points(name, ranks):
    launched.expect("point_checks", name, ranks)


@pytest.mark.parametrize("name", [*launched.names("future_checks"), "end"])
@each("ranks", [2], [1, 3])
def test_futures(name, ranks):
    launched.expect("future_checks", name, ranks)


@pytest.mark.parametrize("name", [*launched.names("tensor_checks"), "end"])
@each("ranks", [2], [1, 3])
def test_every_kind_of_tensor(name, ranks):
    launched.expect("tensor_checks", name, ranks)


@pytest.mark.parametrize("name", [*launched.names("limit_checks"), "end"])
@each("ranks", [2], [1, 3])
@each("replaced", ["off"], ["gloo"])
def test_limits(name, ranks, replaced):
    launched.expect("limit_checks", name, ranks, ("PACELINE_TIMEOUT_MS", "60000"),
                    ("PACELINE_REPLACE", replaced), AUTOLOAD)


@pytest.mark.parametrize("name", [*launched.names("hook_checks"), "end"])
@each("ranks", [2], [1, 3])
def test_hooks(name, ranks):
    launched.expect("hook_checks", name, ranks)


@pytest.mark.parametrize("name", [*launched.names("train_checks"), "end"])
@each("ranks", [2], [1, 3])
def test_training(name, ranks):
    launched.expect("train_checks", name, ranks)


@pytest.mark.parametrize("name", [*launched.names("parallel_checks"), "end"])
@each("ranks", [], [1, 2, 3])
def test_models_spread_over_ranks(name, ranks):
    launched.expect("parallel_checks", name, ranks)


@pytest.mark.parametrize("name", [*launched.names("overlap_checks"), "end"])
@each("ranks", [2], [1, 3])
def test_training_without_ddp(name, ranks):
    launched.expect("overlap_checks", name, ranks)


@pytest.mark.parametrize("name", [*launched.names("buffer_checks"), "end"])
@each("ranks", [2], [1, 3])
def test_what_models_hold(name, ranks):
    launched.expect("buffer_checks", name, ranks)


@pytest.mark.parametrize("name", [*launched.names("pass_checks"), "end"])
@each("ranks", [2], [1, 3])
def test_passes_that_fail_or_are_odd(name, ranks):
    launched.expect("pass_checks", name, ranks)


@pytest.mark.parametrize("name", [*launched.names("place_checks"), "end"])
@each("ranks", [2], [1, 3])
def test_gradients_in_the_store(name, ranks):
    launched.expect("place_checks", name, ranks)


@pytest.mark.parametrize("name", [*launched.names("caller_checks"), "end"])
def test_without_a_thread_that_makes_progress(name):
    launched.expect("caller_checks", name, 2, ("PACELINE_PROGRESS", "caller"))


@pytest.mark.parametrize("name", [*launched.names("method_checks"), "end"])
@each("ranks", [3], [1, 2, 5])
def test_methods_of_bsp(name, ranks):
    launched.expect("method_checks", name, ranks)


@pytest.mark.parametrize("name", [*launched.names("gloo_checks"), "end"])
@each("ranks", [2], [1, 3])
def test_in_place_of_gloo(name, ranks):
    launched.expect("gloo_checks", name, ranks, ("PACELINE_REPLACE", "gloo"), AUTOLOAD)


@pytest.mark.parametrize("replaced, named, by", [
    ("gloo", ["gloo"], "PacelineGroup gloo"), param("mpi", ["mpi"], "PacelineGroup mpi"),
    param("gloo", [], "PacelineGroup undefined"),
    param("gloo", ["cpu:gloo"], "PacelineGroup cpu:gloo"),
    param("mpi", ["gloo"], "ProcessGroupGloo gloo"),
    param("off", ["gloo"], "ProcessGroupGloo gloo"),
])  # fmt: skip
def test_another_backend_is_replaced(replaced, named, by):
    """Under torchrun, in a script as it stands; said once by all ranks together."""
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
        str(launched.RANKS / "replaced.py"), *named,
    ]  # fmt: skip
    env = {**os.environ, **launched.limits(), "PACELINE_REPLACE": replaced, **dict([AUTOLOAD])}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{by} [2.0, 2.0, 2.0]"] * 2
    said = f"paceline: serves CPU tensors in place of {replaced} (PACELINE_REPLACE)."
    assert done.stderr.count(said) == (by.startswith("Paceline")), done.stderr


@pytest.mark.parametrize("feigned, why", [("cuda", "also serves cuda"),
                                          param("newer", "makes groups in a way")])
@each("ranks", [1], [2])
def test_it_is_said_where_nobody_is_replaced(feigned, why, ranks):
    env = {"PACELINE_REPLACE": "gloo", "FEIGN": feigned, **dict([AUTOLOAD])}
    run = launched.start("replaced.py", ranks, "gloo", env=env)
    assert run.status == 0, run.text()
    line = f"ProcessGroupGloo gloo {[float(ranks)] * 3}"
    assert run.text(stream="stdout").splitlines() == [line] * ranks
    said = run.text(stream="stderr")
    assert said.count("paceline: does not serve in place of gloo") == said.count(why) == 1, said


def test_a_name_that_cannot_be_replaced_is_refused():
    code = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import torch
print(caught[0].message)
"""
    assert "PACELINE_REPLACE is 'nccl'; it must be off or gloo or mpi" in python(
        code, PACELINE_REPLACE="nccl")


def lines_of(ranks):
    """What starts.py prints on so many ranks."""
    total = ranks * (ranks + 1) // 2
    return [f"rank {rank} of {ranks}: {total}" for rank in range(ranks)]


@each("how", ["autoload"], ["init", "both"])
def test_under_torchrun(how):
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
        str(launched.RANKS / "starts.py"), how,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == lines_of(2)


@each("how", ["gloo first"], ["both", "file"])
def test_other_starts(how, tmp_path):
    store = tmp_path / "store"
    if how == "gloo first":
        store.mkdir()
    run = launched.start("starts.py", 2, how, store)
    assert run.status == 0, run.text()
    assert sorted(run.text(stream="stdout").splitlines()) == lines_of(2)


def python(code, **env):
    """Runs code in a new interpreter, and returns what it prints."""
    run = launched.start("one.py", 1, code, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "1", **env})
    assert run.status == 0, run.text()
    return run.text()


def test_import_is_light():
    """Users of numpy do not pay for torch, nor users of torch for our core."""
    code = "import sys; paceline.init(); print([m for m in ('torch', 'click') if m in sys.modules])"
    assert python(code) == "[]"
    code = "import torch, sys; print('paceline._core' in sys.modules, hasattr(torch, 'ones'))"
    assert python(code) == "False True"


@each("first", ["import torch"], ["import paceline.torch"])
def test_backend_is_registered_once(first):
    code = f"""
{first}
import torch, paceline.torch
paceline.torch.autoload()
print(torch.distributed.Backend.PACELINE, torch.distributed.Backend.default_device_backend_map)
"""
    out = python(code)
    assert out.startswith("paceline ") and "'cpu': 'gloo'" in out, out


def test_import_torch_never_fails():
    """Even when something in us is broken, `import torch` works, and says so."""
    code = """
import warnings, paceline
paceline.torch = None
import torch.distributed as dist
register = dist.Backend.register_backend
dist.Backend.register_backend = lambda *a, **k: 1 / 0
dist.Backend._plugins.pop("PACELINE", None)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import sys
    sys.modules.pop("paceline.torch", None)
    import paceline.torch
print(caught[0].message)
"""
    assert "could not be registered" in python(code)
