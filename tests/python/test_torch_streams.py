"""paceline.torch.streams: works on tensors of CUDA devices, with a device that is feigned."""

import contextlib
from types import SimpleNamespace
from unittest import mock

import pytest

torch = pytest.importorskip("torch")

from paceline.torch.streams import DeviceWork, is_on_device  # noqa: E402
from paceline.torch.work import Requests  # noqa: E402


class Tensor:
    """A tensor on a device, of which only that is asked."""

    device = torch.device("cuda", 1)

    def __init__(self):
        self.streams = []

    def record_stream(self, stream):
        self.streams.append(stream.cuda_stream)


class Request:
    is_on_device = True

    def __init__(self):
        self.joined, self.waited = [], False

    def join(self, stream):
        self.joined.append(stream)

    def wait(self, timeout_ms=0):
        self.waited = True

    def test(self):
        return self.joined != []


@pytest.fixture
def current():
    """The stream that is current, which tests may change."""
    now = SimpleNamespace(cuda_stream=17)

    @contextlib.contextmanager
    def on(stream):
        before, now.cuda_stream = now.cuda_stream, stream.cuda_stream
        yield
        now.cuda_stream = before

    with mock.patch.multiple(
        torch.cuda, current_stream=lambda device: SimpleNamespace(cuda_stream=now.cuda_stream),
        Stream=lambda device: SimpleNamespace(cuda_stream=99), stream=on,
    ):  # fmt: skip
        yield now


def test_the_stream_waits_and_the_host_does_not(current):
    request, tensor, finished = Request(), Tensor(), []
    work = DeviceWork(request, [tensor], lambda: finished.append(current.cuda_stream))
    assert finished == []
    assert work.wait() and request.joined == [17] and not request.waited
    assert tensor.streams == [17] and finished == [17]
    current.cuda_stream = 18
    work.wait()  # another stream waits as well; what is copied out is copied once
    assert request.joined == [17, 18] and finished == [17]


def test_a_future_is_complete_at_once(current):
    request, tensor = Request(), Tensor()
    made = []

    class Future:
        def __init__(self, devices):
            made.append(devices)

        def set_result(self, value):
            made.append((value, current.cuda_stream))

    with mock.patch.object(torch.futures, "Future", Future):
        work = DeviceWork(request, [tensor])
        assert work.get_future() is work.get_future()
    assert made == [[tensor.device], ([tensor], 99)]
    assert request.joined == [99] and not request.waited and current.cuda_stream == 17


def test_several_requests_and_which_are_on_a_device(current):
    requests = [Request(), Request()]
    work = DeviceWork(Requests(requests), [Tensor()])
    work.wait()
    assert [request.joined for request in requests] == [[17], [17]]
    assert is_on_device(Requests(requests)) and is_on_device(requests[0])
    assert not is_on_device(Requests([])) and not is_on_device(object())


def test_what_went_wrong_is_raised(current):
    request = Request()
    request.test = mock.Mock(side_effect=RuntimeError("a peer is lost"))
    work = DeviceWork(request, [Tensor()])
    assert work.is_completed() and isinstance(work.exception(), RuntimeError)
    with pytest.raises(RuntimeError, match="a peer is lost"):
        work.wait()
