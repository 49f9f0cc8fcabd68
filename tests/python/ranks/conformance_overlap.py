"""torch's own tests of DistributedDataParallel, with paceline.torch.overlap() in its place.

Not collected by itself: test_conformance_overlap.py runs it as conformance.py is run. Most of these
tests want two CUDA devices and do nothing with them that the CPU could not: OnHost has them run
there. What DDP has and overlap() does not is refused by OverlapInPlace, with a sentence.
"""

import contextlib
import inspect
import os

os.environ.update(SUITE_AS="gloo", SUITE_OVER="paceline")  # before conformance reads them

import conformance  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from conformance import distributed_test  # noqa: E402
from torch import nn  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

import paceline.torch  # noqa: E402
from paceline import RefusalError  # noqa: E402
from paceline.torch import replace  # noqa: E402

# What changes how DDP does its work, and not what comes of it; or what overlap() always does.
WITHOUT_EFFECT = {
    "device_ids", "output_device", "dim", "bucket_cap_mb", "find_unused_parameters",
    "check_reduction", "gradient_as_bucket_view", "static_graph", "init_sync",
}  # fmt: skip

OF_ONE = {"reducer", "logger", "broadcast_bucket_size"}  # what its class does not have


class OverlapInPlace(nn.Module):
    """A model with overlap(), called like DistributedDataParallel."""

    def __init__(
        self, module, *places, process_group=None, broadcast_buffers=True,
        forward_sync_buffers=None, **options,
    ):
        super().__init__()
        for name, value in options.items():
            if name not in WITHOUT_EFFECT and value not in (None, False):
                raise RefusalError(f"overlap has no option {name} of DistributedDataParallel.")
        if forward_sync_buffers is not None:
            broadcast_buffers = forward_sync_buffers
        self.forward_sync_buffers = broadcast_buffers
        self.module, self.process_group = module, process_group or dist.group.WORLD
        self.begin()

    def begin(self):
        self.overlapped = paceline.torch.overlap(
            self.module, group=self.process_group, broadcast_buffers=self.forward_sync_buffers)

    def forward(self, *inputs, **keywords):
        return self.module(*inputs, **keywords)

    def no_sync(self):
        return self.overlapped.no_sync()

    def _set_static_graph(self):
        pass

    def __getstate__(self):
        return {key: value for key, value in self.__dict__.items()
                if key not in ("overlapped", "process_group")}

    def __setstate__(self, state):
        self.__dict__.update(state, process_group=dist.group.WORLD)
        self.begin()

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(*_):
        raise RefusalError("overlap exchanges all that a model trains; it ignores no parameters.")

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if hasattr(Whole, name) or name in OF_ONE:
                raise RefusalError(f"overlap has no {name} of DistributedDataParallel.") from None
            raise


Whole = nn.parallel.DistributedDataParallel
for place in (nn.parallel, nn.parallel.distributed, distributed_test):
    place.DistributedDataParallel = OverlapInPlace


class OnHost(TorchFunctionMode):
    """CUDA devices are the CPU."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(function, "__name__", "")
        if name == "cuda":
            return args[0]
        if kwargs.get("device") is not None:
            kwargs["device"] = on_host(kwargs["device"])
        if name == "to":
            args = (args[0], *(on_host(arg) for arg in args[1:]))
        return function(*args, **kwargs)


def on_host(place):
    """A device's place on the CPU; whatever else as it is."""
    if isinstance(place, bool):
        return place
    if isinstance(place, int) or (isinstance(place, str) and place.startswith("cuda")):
        return "cpu"
    if isinstance(place, torch.device) and place.type == "cuda":
        return torch.device("cpu")
    return place


replace._is_here = lambda device: False  # or groups would be left to who serves devices too
usual_to = nn.Module.to
nn.Module.to = lambda self, *args, **kwargs: usual_to(
    self, *map(on_host, args), **{key: on_host(value) for key, value in kwargs.items()})
nn.Module.cuda = lambda self, *_: self
torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 8
for name in ("set_device", "synchronize", "manual_seed", "manual_seed_all", "empty_cache"):
    setattr(torch.cuda, name, lambda *_: None)
torch.cuda.current_device = lambda: 0
torch.cuda.device = lambda *_: contextlib.nullcontext()
OnHost().__enter__()

BASE = distributed_test.DistributedTest._DistTestBase
OURS = {name for name, test in vars(BASE).items() if name.startswith("test_")
        and "DistributedDataParallel" in inspect.getsource(inspect.unwrap(test))
        or name.startswith(("test_ddp_", "test_DistributedDataParallel"))}  # fmt: skip


class TestOverlap(conformance.TestOverPaceline):
    pass


for name in dir(TestOverlap):
    if name.startswith("test_") and name not in OURS:
        setattr(TestOverlap, name, None)
