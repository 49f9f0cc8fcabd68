"""Expected times of an allreduce of all ranks, by its length."""

from dataclasses import dataclass

from paceline import _core

# The part of a bucket's time that the fixed cost of its call may take. Between nodes less: messages
# also cost processors, which compute meanwhile.
OVERHEAD, OVERHEAD_BETWEEN_NODES = 0.05, 0.01
LEAST_BYTES, MOST_BYTES = 64 << 10, 32 << 20  # of a bucket
SIZES = tuple(1 << k for k in range(12, 26))  # 4 KiB to MOST_BYTES


@dataclass(frozen=True)
class Prices:
    """Seconds of a call of each of SIZES; between them on a line, and on through the last two."""

    seconds: tuple[float, ...]
    overhead: float = OVERHEAD

    @classmethod
    def of(cls, machine: str, ranks: int, nodes: int) -> "Prices":
        """Prices that the choice of algorithms expects on this machine (PACELINE_MACHINE), with the
        overhead of the task graph. Equal on all ranks if the arguments are."""
        settings = dict(part.split("=") for part in _core.machine_settings(machine).split(","))
        on = f"{machine},ranks_per_node={-(-ranks // nodes)}"
        return cls(tuple(1e-6 * float(settings["task_us"]) +
                         _core.choose("allreduce", ranks, size, machine=on)["expected_s"]
                         for size in SIZES),
                   OVERHEAD_BETWEEN_NODES if nodes > 1 else OVERHEAD)

    @property
    def byte_s(self) -> float:
        """Seconds of one more byte in a long call."""
        return (self.seconds[-1] - self.seconds[-2]) / (SIZES[-1] - SIZES[-2])

    @property
    def call_s(self) -> float:
        """Seconds of a call of no bytes, by the line through the shortest two."""
        return self.cost_s(0)

    def cost_s(self, nbytes: float) -> float:
        """Seconds of an allreduce of `nbytes`."""
        at = next((i for i, size in enumerate(SIZES[1:-1], 1) if nbytes <= size), len(SIZES) - 1)
        (first, last), (low_s, high_s) = SIZES[at - 1:at + 1], self.seconds[at - 1:at + 1]
        return low_s + (nbytes - first) * (high_s - low_s) / (last - first)

    def bucket_bytes(self) -> int:
        """The length from which the fixed cost takes at most `overhead` of a bucket's time."""
        byte_s = (self.seconds[-1] - self.call_s) / SIZES[-1]
        found = self.call_s / self.overhead / byte_s if byte_s else MOST_BYTES
        return round(min(max(found, LEAST_BYTES), MOST_BYTES))
