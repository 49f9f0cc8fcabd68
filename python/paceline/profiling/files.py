"""The file that each rank writes: the mirror of src/profile/format.hpp.

Files may be damaged, or may come from a killed program. Their contents are checked, and the file
of a killed program is read up to its end.
"""

import contextlib
import json
import os
import stat
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from paceline.errors import UsageError
from paceline.files import member, whole, wholes

MAGIC = b"PLPROF1\n"
HEADER = struct.Struct("<8sIIQQQQQiiqqqqQ16s256s256s")
ROOMS, ROOMS_AT = struct.Struct("<QQ"), 16  # bytes of text, and records
RECORD = np.dtype([
    ("enter", "<i8"), ("leave", "<i8"), ("wait", "<i8"), ("done", "<i8"), ("bytes", "<u8"),
    ("communicator", "<u4"), ("number", "<u4"), ("site", "<u4"), ("collective", "<u2"),
    ("stage", "u1"), ("nonblocking", "u1"),
])  # fmt: skip
ENTERED, RETURNED, COMPLETE, FAILED = 1, 2, 3, 4
SOURCES = ("mpi", "paceline")
MOST_RANKS = 1 << 20
MOST_TEXT = 64 << 20
WORDS = {"bcast": "broadcast"}  # MPI's name: ours


@dataclass
class Reading:
    """Offset of a rank's clock from rank 0's."""

    when: str
    at_ns: int
    offset_ns: int
    error_ns: int


@dataclass
class RankFile:
    """The records of one rank. Times are nanoseconds of its own clock."""

    path: str
    source: str
    rank: int
    ranks: int
    host: str
    node: str
    clock: int
    begin_ns: int
    end_ns: int          # 0: the program did not end in peace
    begin_unix_ns: int
    calls: int           # recorded or not
    records: np.ndarray  # of RECORD, those that were entered
    collectives: dict[int, str] = field(default_factory=dict)
    communicators: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    operations: dict[int, tuple[int, int]] = field(default_factory=dict)  # persistent: see of()
    sites: dict[int, str] = field(default_factory=dict)
    readings: list[Reading] = field(default_factory=list)
    lines_lost: int = 0

    @property
    def lost(self):
        """Number of calls that did not fit into the memory for records."""
        return max(0, self.calls - len(self.records))

    def of(self, communicator):
        """(records, numbers) of a communicator. Starts of its persistent operations are numbered
        apart: MPI matches them by which operation was made when, and not by when they start."""
        parts = [(communicator, 0)]
        parts += [(number, (1 + which) << 32) for number, (parent, which) in
                  self.operations.items() if parent == communicator]
        found = [(self.records[self.records["communicator"] == number], base)
                 for number, base in parts]
        return (np.concatenate([records for records, _ in found]), np.concatenate(
            [records["number"].astype(np.int64) + base for records, base in found]))

    @property
    def last_ns(self):
        """Time at which it ended, or of its last event."""
        if self.end_ns:
            return self.end_ns
        if not len(self.records):
            return self.begin_ns
        return int(max(self.records[name].max() for name in ("enter", "leave", "done")))


def read_folder(folder):
    """All ranks' files of a folder. Raises UsageError if there are none, or one is damaged."""
    folder = Path(folder)
    if not folder.is_dir():
        raise UsageError(f"profile: there is no folder {folder}. Make a profile first: "
                         "paceline profile -- PROGRAM.")
    paths = sorted(folder.glob("*.profile"), key=lambda path: (len(path.name), path.name))
    if not paths:
        raise UsageError(
            f"profile: no rank has left a profile in {folder}. Did the program call collectives "
            "of Paceline, or of an MPI that has a drop-in library?")
    return [read_file(path) for path in paths]


def read_file(path):
    """The file of one rank. Raises UsageError, which names the file and the fault."""
    try:
        return _checked(path)
    except (OSError, ValueError, struct.error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"profile: {path} cannot be used: {why}. Leave it out of the folder, or "
                         "make the profile again.") from error


def shorten(folder):
    """Leaves unused room out of the files of ranks that ended normally. Every file can be read
    before and after."""
    for path in Path(folder).glob("*.profile"):
        with contextlib.suppress(OSError), open(path, "rb") as file:   # it stays long
            head = bytearray(file.read(HEADER.size))
            fields = HEADER.unpack(head)
            header_bytes, record_bytes, text_bytes, capacity, text_used, calls = fields[1:7]
            kept = min(calls, capacity)
            ROOMS.pack_into(head, ROOMS_AT, text_used, kept)
            content = bytes(head) + file.read(header_bytes + text_used - len(head))
            file.seek(header_bytes + text_bytes)
            content += file.read(kept * record_bytes)
            if fields[12]:
                short = path.with_suffix(".short")
                try:
                    short.write_bytes(content)
                    short.replace(path)
                finally:
                    short.unlink(missing_ok=True)


def _checked(path):
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is no plain file")
        head = file.read(HEADER.size)
        if len(head) < HEADER.size or head[:8] != MAGIC:
            raise ValueError("it is no profile of this version of Paceline")
        fields = HEADER.unpack(head)
        header_bytes, record_bytes, text_bytes, capacity, text_used, calls, lines_lost = fields[1:8]
        if record_bytes != RECORD.itemsize or not HEADER.size <= header_bytes <= 1 << 20:
            raise ValueError("its header is damaged")
        if text_used > text_bytes or text_bytes > MOST_TEXT:
            raise ValueError("its header is damaged: more text than there is room for")
        if header_bytes + text_bytes + capacity * record_bytes > status.st_size:
            raise ValueError(f"it has been cut off: {status.st_size} bytes are left of "
                             f"{header_bytes + text_bytes + capacity * record_bytes}")
        file.seek(header_bytes)
        text = file.read(text_used)
        file.seek(header_bytes + text_bytes)
        kept = min(calls, capacity)
        records = np.frombuffer(file.read(kept * record_bytes), RECORD)
    source, host, node = (part.split(b"\0")[0].decode("utf-8", "replace") for part in fields[15:18])
    rank, ranks, _, begin, end, unix, clock = fields[8:15]
    if source not in SOURCES or not 0 <= rank < ranks <= MOST_RANKS:
        raise ValueError(f"its header is damaged: rank {rank} of {ranks}, of {source[:20]!r}")
    found = RankFile(str(path), source, rank, ranks, host, node, clock, begin, end, unix, calls,
                     records[records["stage"] >= ENTERED], lines_lost=lines_lost)
    _read_lines(text, found)
    _check_records(found)
    return found


def _read_lines(text, found):
    """Reads the names of the numbers in records. Skips a last line that is incomplete."""
    for line in text.replace(b"\0", b"").split(b"\n")[:-1]:
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            if found.end_ns:
                raise ValueError("its text is damaged") from None
            continue
        if "operation" in said:
            number = whole(said, "number", 0, 1 << 32)
            found.operations[number] = (whole(said, "communicator", 0, 1 << 32),
                                        whole(said, "operation", 0, 1 << 30))
        elif "communicator" in said:
            members = wholes(said, "ranks", -1, MOST_RANKS)
            number = whole(said, "communicator", 0, 1 << 32)
            found.communicators[number] = (whole(said, "instance", 0, 1 << 64), tuple(members))
        elif "site" in said:
            found.sites[whole(said, "site", 0, 1 << 32)] = member(said, "name", str)
        elif "collective" in said:
            name = member(said, "name", str)
            found.collectives[whole(said, "collective", 0, 1 << 16)] = WORDS.get(name, name)
        elif "clock" in said:
            limits = (-(1 << 62), 1 << 62)
            found.readings.append(Reading(
                member(said, "clock", str), whole(said, "at_ns", *limits),
                whole(said, "offset_ns", *limits), whole(said, "error_ns", 0, 1 << 62)))


def _check_records(found):
    """Raises ValueError for records with unknown numbers or impossible times."""
    records = found.records
    if not len(records):
        return
    groups = {*found.communicators, *(number for number, (parent, _) in found.operations.items()
                                      if parent in found.communicators)}
    for what, known in (("collective", found.collectives), ("communicator", groups)):
        unknown = set(np.unique(records[what]).tolist()) - set(known)
        if unknown and not found.lines_lost and found.end_ns:
            raise ValueError(f"its records are damaged: {what} {min(unknown)} is not explained")
        for number in unknown:
            found.records = found.records[found.records[what] != number]
    early = found.begin_ns
    if (found.records["enter"] < early).any() or (found.records["stage"] > FAILED).any():
        raise ValueError("its records are damaged: a call was entered before the profile begins")
