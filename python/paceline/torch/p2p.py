"""send and recv, over broadcasts between two ranks.

The core has only collectives. Each pair and direction has a communicator of two ranks, which is
made at the first message and kept. A message is an envelope with tag and length. The envelope holds
a short message; a long one follows it. So messages of one direction arrive in the order in which
they are sent, and more tags need no more memory.

Messages match receives by source and tag, in order, as in MPI. An envelope goes to the first posted
receive that matches, or is kept until one does. The receiver reads a direction only while it has
receives for it, so that other messages stay with the sender as long as possible. A thread that
waits for a receive reads; the watcher reads for receives without a waiting thread.
"""

import hashlib
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from paceline import calls
from paceline.communicator import Communicator
from paceline.errors import MismatchError, RefusalError, ResourceError, TimeoutError, UsageError
from paceline.torch.tensors import KNOWN, moved, put, room
from paceline.torch.tensors import source as held
from paceline.torch.watching import LOOK_S, watcher
from paceline.torch.work import Requests, Work

_ENVELOPE = struct.Struct("<qqqq")  # tag, type of the elements, bytes, where they are
_INSIDE, _BEHIND, _ON_DEVICE = range(3)
_ENVELOPE_BYTES = 1024
_SHORT_BYTES = _ENVELOPE_BYTES - _ENVELOPE.size
_TYPES = sorted(KNOWN, key=str)
_NAP_MS = 10
_GRACE_MS = 1000  # for the core, which knows more, to say first that time is up


class PointToPoint:
    """Mixed into the process group, beside Collectives."""

    _comm: Communicator
    _knobs: calls.Knobs
    _work: Callable[..., Work]

    def _begin_p2p(self) -> None:
        self._channels: dict[tuple[int, int], Channel] = {}
        self._posted: list[Receive] = []  # that no message has been found for
        self._kept: list[Message] = []  # that no receive has asked for
        self._p2p_lock = threading.RLock()

    def _end_p2p(self) -> None:
        with self._p2p_lock:
            for receive in self._posted:
                receive.error = UsageError("recv: its process group has been destroyed.")
            self._posted.clear()
            self._kept.clear()
            self._channels.clear()

    def send(self, tensors: list[torch.Tensor], dst: int, tag: int = 0) -> Work:
        memory = held(moved(tensors[0]))
        raw, envelope, where = _bytes_of(memory), bytearray(_ENVELOPE_BYTES), _ON_DEVICE
        if memory.is_cpu:
            where = _INSIDE if raw.numel() <= _SHORT_BYTES else _BEHIND
        _ENVELOPE.pack_into(envelope, 0, tag, _TYPES.index(memory.dtype), raw.numel(), where)
        if where == _INSIDE:
            envelope[_ENVELOPE.size : _ENVELOPE.size + raw.numel()] = raw.numpy().data
        with self._p2p_lock:
            channel = self._channel(self._comm.rank, dst)
            request = channel.broadcast(envelope)
            if where != _INSIDE:
                first, request = request, channel.broadcast(raw)
        if where == _BEHIND:  # a device's stream waits for what comes last
            request = Requests([first, request])
        return self._work(request, list(tensors))

    def recv(self, tensors: list[torch.Tensor], src: int, tag: int = 0) -> Work:
        memory, finish = room(moved(tensors[0]))
        with self._p2p_lock:
            self._channel(src, self._comm.rank)  # refuses what cannot be
            receive = Receive(self, memory, src, tag)
            self._post(receive)
        return self._work(receive, list(tensors), finish, src)

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> Work:
        """Receives from the rank that sends first. Only the time-out reports a lost rank."""
        memory, finish = room(moved(tensors[0]))
        with self._p2p_lock:
            receive = Receive(self, memory, -1, tag)
            self._post(receive)
        return self._work(receive, list(tensors), finish)

    def _channel(self, source: int, target: int) -> "Channel":
        """The channel of one direction, made when it is first used."""
        channel = self._channels.get((source, target))
        if channel is None:
            if source == target:
                raise RefusalError(
                    f"send: rank {source} to itself is not supported; copy the tensor."
                )
            # Apart from the names of other groups.
            name = hashlib.blake2b(b"points %d %d" % (source, target), digest_size=8)
            number = int.from_bytes(name.digest(), "little")
            channel = Channel(self, self._comm.subgroup((source, target), number), source)
            self._channels[source, target] = channel
        return channel

    def _post(self, receive: "Receive") -> None:
        for message in self._kept:
            if receive.wants(message):
                self._kept.remove(message)
                receive.take(message)
                return
        self._posted.append(receive)
        self._look()
        if self._posted:
            watcher.add(self)

    def _look(self) -> None:
        """Reads arrived messages as long as receives match them. The caller holds the lock."""
        while any([self._read(source) for source in self._asked_sources()]):
            pass

    def _asked_sources(self) -> list[int]:
        sources = {receive.source for receive in self._posted}
        if -1 in sources:
            return [rank for rank in range(self._comm.size) if rank != self._comm.rank]
        return sorted(sources)

    def _read(self, source: int) -> bool:
        """True if there was another message of this source."""
        try:
            channel = self._channel(source, self._comm.rank)
            is_named = any(receive.source == source for receive in self._posted)
            message = channel.next_message(is_named)
        except Exception as error:
            for receive in self._posted_for(source):
                self._posted.remove(receive)
                receive.error = error
            return False
        if message is None:
            return False
        for receive in self._posted_for(source):
            if receive.wants(message):
                self._posted.remove(receive)
                receive.take(message)
                return True
        if message.begins():
            self._kept.append(message)
        return True

    def _give_up(self, error: Exception) -> None:
        """Ends all posted receives with `error`. The caller holds the lock."""
        for receive in self._posted:
            receive.error = error
        self._posted.clear()

    def _posted_for(self, source: int) -> Iterator["Receive"]:
        return iter([one for one in self._posted if one.source in (-1, source)])


class Channel:
    """One direction between two ranks."""

    def __init__(self, points: PointToPoint, comm: Communicator, source: int):
        self._p2p, self._comm, self._source = points, comm, source
        self._envelope = bytearray()
        self.request: Any = None  # for the next envelope, while a receive asks for it
        self.error: BaseException | None = None  # why nothing more can be read

    def broadcast(self, memory: Any) -> Any:
        knobs = self._p2p._knobs
        return self._comm.start("broadcast", None, memory, "sum", 0, None, None, knobs, None)

    def next_message(self, is_awaited: bool) -> "Message | None":
        """The next message, or None. `is_awaited`: waits for it, and reports a lost or late rank;
        otherwise only looks for one."""
        if self.error is not None:
            raise self.error
        if self.request is None:
            if not is_awaited and not self._comm.is_called():
                return None
            self._envelope = bytearray(_ENVELOPE_BYTES)
            self.request = self.broadcast(self._envelope)
        if not self.request.test():
            return None
        self.request = None
        return Message(self, self._source, self._envelope)


    def fail(self, message: "Message", error: Exception) -> BaseException:
        """Handles a message that this rank cannot take: later receives from its sender fail, and
        the sender gets the error. Returns the error."""
        me = self._p2p._comm.rank
        self.error = ResourceError(
            f"recv: rank {me} cannot take the {message.length} bytes that rank {message.source} "
            f"sends under tag {message.tag}: {error} It takes no message of rank {message.source} "
            "any more.")
        self.error.__cause__ = error
        self._comm._core.abort(f"cannot take what rank {message.source} sends: {error}")
        return self.error


class Message:
    """A message whose envelope has arrived."""

    def __init__(self, channel: Channel, source: int, envelope: bytearray):
        self.source, self._channel, self._envelope = source, channel, envelope
        self.tag, number, self.length, self._where = _ENVELOPE.unpack_from(envelope)
        self.type = _TYPES[number]
        self.memory: torch.Tensor | None = None  # where it goes, or is
        self.request: Any = None  # of what follows the envelope
        self.error: BaseException | None = None  # why it cannot be taken

    def fits(self, memory: torch.Tensor) -> bool:
        return self.length == memory.nbytes and self.type == memory.dtype

    def goes_into(self, memory: torch.Tensor) -> bool:
        """True if the message can be received straight into this memory."""
        return self.fits(memory) and memory.is_cpu == (self._where != _ON_DEVICE)

    def room(self) -> torch.Tensor:
        """Memory of its own, for a message that no receive takes directly."""
        device = "cuda" if self._where == _ON_DEVICE else "cpu"
        return torch.empty(self.length // self.type.itemsize, dtype=self.type, device=device)

    def begins(self, memory: torch.Tensor | None = None) -> bool:
        """Begins to receive the long part, into this memory or into memory of its own, since later
        messages of the channel follow it. False on failure; then the channel has the error."""
        try:
            self.memory = self.room() if memory is None else memory
            raw = _bytes_of(self.memory)
            if self._where == _INSIDE:
                raw.numpy()[:] = memoryview(self._envelope)[_ENVELOPE.size :][: self.length]
            else:
                self.request = self._channel.broadcast(raw)
        except Exception as error:
            self.error = self._channel.fail(self, error)
        return self.error is None


class Receive:
    """A posted receive, and later its request.

    source: the sending rank; -1 for any, until the message is found.
    """

    def __init__(self, points: PointToPoint, memory: torch.Tensor, source: int, tag: int):
        self.source, self.tag = source, tag
        self.is_on_device = not memory.is_cpu
        self.error: BaseException | None = None
        self._p2p, self._memory = points, memory
        self._message: Message | None = None

    def wants(self, message: Message) -> bool:
        return self.tag == message.tag and self.source in (-1, message.source)

    def take(self, message: Message) -> None:
        """Takes this message. The caller holds the lock."""
        self.source, memory = message.source, self._memory
        if not message.fits(memory):
            self.error = MismatchError(
                f"recv: rank {message.source} sends {message.length} bytes of {message.type} under "
                f"tag {self.tag} where rank {self._p2p._comm.rank} expects {memory.nbytes} of "
                f"{memory.dtype}; both must be equal. The message is lost."
            )
        if message.memory is None and not message.begins(
                memory if message.goes_into(memory) else None):
            self.error = message.error
            return
        self._message = message

    def test(self) -> bool:
        return self._has_begun() and self._ends(lambda request: request.test())

    def sleep_for(self, milliseconds: int) -> bool:
        return self._begins_within(milliseconds) and self._ends(
            lambda request: request.sleep_for(milliseconds))

    def wait_for(self, milliseconds: int) -> bool:
        return self._begins_within(milliseconds) and self._ends(
            lambda request: request.wait_for(milliseconds))

    def wait(self) -> None:
        limit_ms = self._p2p._knobs.timeout_ms
        while not self._begins_within(limit_ms + (_GRACE_MS if self.source >= 0 else 0)):
            if self._is_withdrawn():
                who = "no rank" if self.source < 0 else f"not even rank {self.source}"
                raise TimeoutError(
                    f"recv: {who} has sent anything to rank {self._p2p._comm.rank} under tag "
                    f"{self.tag} within {limit_ms} ms. Raise the time-out, or look at the ranks "
                    "that should send."
                )
        self._ends(lambda request: request.wait() or True)

    def join(self, stream: int) -> None:
        """For memory on a device: the host waits for the envelope, and the stream for the long
        part."""
        while not self._has_begun():
            time.sleep(LOOK_S)
        message = self._message
        if message is not None and message.request is not None:
            message.request.join(stream)
            self._copy(message)

    def _ends(self, ends: Callable[[Any], bool]) -> bool:
        message = self._message
        if message is None or (message.request is not None and not ends(message.request)):
            return False
        self._copy(message)
        return True

    def _copy(self, message: Message) -> None:
        with self._p2p._p2p_lock:
            kept, message.memory = message.memory, self._memory
            if kept is not None and kept is not self._memory:
                put(self._memory.view(-1), kept)

    def _begins_within(self, milliseconds: int) -> bool:
        end = time.monotonic() + 1e-3 * milliseconds
        while not self._has_begun():
            if time.monotonic() > end:
                return False
            self._nap()
        return True

    def _nap(self) -> None:
        """Sleeps until a message may have arrived."""
        points = self._p2p
        channel = points._channels.get((self.source, points._comm.rank))
        request = channel.request if channel is not None else None
        if request is None:
            time.sleep(LOOK_S)
        else:
            try:
                request.wait_for(_NAP_MS)
            except Exception:  # the next look meets it again
                pass

    def _has_begun(self) -> bool:
        if self._message is None and self.error is None:
            with self._p2p._p2p_lock:
                self._p2p._look()
        if self.error is not None:
            raise self.error
        return self._message is not None

    def _is_withdrawn(self) -> bool:
        """True if the receive was withdrawn before it took a message."""
        with self._p2p._p2p_lock:
            if self not in self._p2p._posted:
                return False
            self._p2p._posted.remove(self)
            return True


def _bytes_of(memory: torch.Tensor) -> torch.Tensor:
    return memory.detach().reshape(-1).view(torch.uint8)
