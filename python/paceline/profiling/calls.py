"""The ranks' records brought together: one clock, and the k-th call of a communicator on each rank
is the same collective."""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from paceline.errors import UsageError
from paceline.profiling import files
from paceline.profiling.alike import paired

S = 1e-9


@dataclass
class Group:
    """A communicator's calls: rows are calls, columns its ranks. Times in seconds, NaN: not known.

    enter: when a rank came. back: when the call returned. leave: when the collective was over for
    it. wait: when it began to wait for a non-blocking one. spent: how long its program stood in the
    call, and in waiting; never in two calls at once.
    """

    source: str
    members: tuple[int, ...]
    instance: int
    number: np.ndarray
    collective: np.ndarray  # names
    bytes: np.ndarray       # of the full message
    site: np.ndarray        # labels
    nonblocking: np.ndarray
    enter: np.ndarray
    back: np.ndarray
    leave: np.ndarray
    wait: np.ndarray
    spent: np.ndarray

    @property
    def complete(self):
        """Calls that every rank has entered."""
        return ~np.isnan(self.enter).any(axis=1)


@dataclass
class Calls:
    """All calls of a profile, on rank 0's clock; time 0 is when the first rank began to record."""

    ranks: int
    sources: list[str]
    nodes: dict[int, str]                 # rank -> node
    run_s: dict[int, float]               # rank -> how long it was recorded
    groups: list[Group]
    notes: list[str] = field(default_factory=list)
    clock_error_s: float = 0.0            # the largest, of the ranks that need a comparison
    sites: dict[str, int] = field(default_factory=dict)


def read(folder):
    """The calls in a folder of profiles; UsageError where there is nothing to read."""
    return together(files.read_folder(folder))


def together(found):
    """The calls of files of all ranks."""
    sizes = {one.ranks for one in found}
    if len(sizes) > 1:
        raise UsageError(f"profile: files of programs of {' and '.join(map(str, sorted(sizes)))} "
                         "ranks lie in one folder; give each profile a folder of its own.")
    ranks = sizes.pop()
    notes = []
    offsets, error_s = clocks(found, notes)
    start = min(one.begin_ns - offset(np.array(one.begin_ns))
                for one, offset in zip(found, offsets))
    zero = int(start)
    by_group = defaultdict(dict)
    unnamed = defaultdict(lambda: defaultdict(list))  # by members: rank -> of each communicator
    runs = {}
    for one, offset in zip(found, offsets):
        runs[one.rank] = max(runs.get(one.rank, 0.0), (one.last_ns - one.begin_ns) * S)
        for number, (instance, members) in one.communicators.items():
            records, numbers = one.of(number)
            if not len(records) or one.rank not in members:
                continue
            part = (one, records, numbers, offset)
            if one.source == "mpi":
                unnamed[members][one.rank].append((instance, part))
            else:
                by_group[one.source, members, instance][one.rank] = part
    for members, by_rank in unnamed.items():
        add_paired(by_group, members, by_rank)
    groups = [group_of(key, parts, zero, notes) for key, parts in by_group.items()]
    set_spent(groups)
    groups.sort(key=lambda group: (-len(group.members), group.members, np.nanmin(group.enter)))
    say_what_is_missing(found, ranks, notes)
    return Calls(ranks, sorted({one.source for one in found}),
                 {one.rank: one.node for one in found}, runs, groups, notes, error_s)


def add_paired(by_group, members, by_rank):
    """Adds the communicators of an MPI that have these members."""
    parts = {rank: [part for _, part in sorted(own, key=lambda one: one[0])]
             for rank, own in by_rank.items()}
    names = {rank: [names_of(*part[:3]) for part in own] for rank, own in parts.items()}
    for rank, places in paired(names).items():
        for instance, place in enumerate(places):
            by_group["mpi", members, instance][rank] = parts[rank][place]


def names_of(one, records, numbers):
    """The collectives of a communicator as MPI matches them."""
    kinds = records["collective"][np.argsort(numbers, kind="stable")]
    return tuple(one.collectives[kind] for kind in kinds.tolist())


def clocks(found, notes):
    """Per file the function from its own clock to how far that is from rank 0's (ns)."""
    first = min(found, key=lambda one: one.rank)
    measured = {}
    for one in found:
        if one.readings:
            measured.setdefault((one.source, one.clock), one.readings)
    offsets, errors = [], [0]
    for one in found:
        readings = measured.get((one.source, one.clock)) or next(
            (some for (_, clock), some in measured.items() if clock == one.clock), None)
        if one.clock == first.clock and (first.rank == 0 or not readings):
            offsets.append(lambda at: np.zeros_like(at, dtype=np.int64))
        elif readings:
            offsets.append(drifting(readings))
            errors += [reading.error_ns for reading in readings]
        else:
            notes.append(f"rank {one.rank}: its clock was never compared with rank 0's; its times "
                         "are set by the time of day, and may be off by milliseconds.")
            offset = (one.begin_ns - one.begin_unix_ns) - (first.begin_ns - first.begin_unix_ns)
            offsets.append(lambda at, by=offset: np.full_like(at, by, dtype=np.int64))
    return offsets, max(errors) * S


def drifting(readings):
    """The offset as a line through the first and the last reading."""
    first, last = readings[0], readings[-1]
    span = last.at_ns - first.at_ns
    slope = (last.offset_ns - first.offset_ns) / span if span > 0 else 0.0

    def offset(at):
        return first.offset_ns + np.rint(slope * (at - first.at_ns)).astype(np.int64)

    return offset


def group_of(key, parts, zero, notes):
    """The calls of one communicator, from the records of its ranks."""
    source, members, instance = key
    numbers = np.unique(np.concatenate([own for _, _, own, _ in parts.values()]))
    shape = (len(numbers), len(members))
    times = {name: np.full(shape, np.nan) for name in ("enter", "back", "leave", "wait")}
    kinds = np.full(shape, "", dtype=object)
    nbytes = np.zeros(len(numbers), dtype=np.float64)
    site, nonblocking = np.full(len(numbers), "", dtype=object), np.zeros(len(numbers), dtype=bool)
    for rank, (one, records, own, offset) in sorted(parts.items(), reverse=True):
        rows = np.searchsorted(numbers, own)
        column = members.index(rank)

        def seconds(name, records=records, offset=offset):
            own = records[name]
            known = own > 0
            return np.where(known, (own - offset(own) - zero) * S, np.nan)

        enter, leave, wait, done = map(seconds, ("enter", "leave", "wait", "done"))
        later = records["nonblocking"] > 0
        over = np.where(later, done, leave)
        times["enter"][rows, column] = enter
        times["back"][rows, column] = leave
        times["leave"][rows, column] = np.where(records["stage"] == files.FAILED, np.nan, over)
        times["wait"][rows, column] = wait
        kinds[rows, column] = [one.collectives[kind] for kind in records["collective"].tolist()]
        nbytes[rows] = np.maximum(nbytes[rows], records["bytes"])
        site[rows] = [one.sites.get(place, "") for place in records["site"].tolist()]
        nonblocking[rows] |= later
    in_time = np.argsort(np.nanmin(times["enter"], axis=1), kind="stable")
    numbers, kinds, nbytes, site, nonblocking = (
        one[in_time] for one in (numbers, kinds, nbytes, site, nonblocking))
    times = {name: values[in_time] for name, values in times.items()}
    names = kinds[:, 0].copy()
    for column in range(len(members)):
        names = np.where(names == "", kinds[:, column], names)
        differs = (kinds[:, column] != "") & (kinds[:, column] != names)
        if differs.any():
            row = int(np.argmax(differs))
            notes.append(f"ranks {members[0]} and {members[column]} differ in call "
                         f"{numbered(numbers[row])} of a communicator: {names[row]} and "
                         f"{kinds[row, column]}; the profile leaves such calls out.")
            for values in times.values():
                values[differs, column] = np.nan
    return Group(source, members, instance, numbers, names, nbytes, site, nonblocking, **times,
                 spent=np.zeros(shape))


def set_spent(groups):
    """Sets Group.spent. A program is taken to wait for a non-blocking call from its wait on, or
    from the start on if it never waits, as torch does in a future; time that belongs to two calls
    counts for the one that began to wait first."""
    stood = defaultdict(list)  # rank -> begins, ends, rows, column of spent
    for group in groups:
        for column, rank in enumerate(group.members):
            back, spent = group.back[:, column], group.spent[:, column]
            waits = np.where(group.nonblocking, np.fmax(group.wait[:, column], back), np.nan)
            for begin, end in ((group.enter[:, column], back), (waits, group.leave[:, column])):
                (rows,) = np.nonzero(end > begin)  # neither is unknown
                stood[rank].append((begin[rows], end[rows], rows, spent))
    for pieces in stood.values():
        begins, ends = (np.concatenate(column) for column in list(zip(*pieces))[:2])
        order = np.argsort(begins, kind="stable")
        until = np.maximum.accumulate(np.concatenate(([-np.inf], ends[order][:-1])))
        alone = np.empty(len(order))
        alone[order] = np.clip(ends[order] - np.maximum(begins[order], until), 0, None)
        at = 0
        for begin, _, rows, spent in pieces:
            np.add.at(spent, rows, alone[at : at + len(begin)])
            at += len(begin)


def numbered(number):
    """A call's number, in words where it is the start of a persistent operation."""
    which, start = divmod(int(number), 1 << 32)
    return f"{start} of persistent operation {which - 1}" if which else str(start)


def say_what_is_missing(found, ranks, notes):
    """Notes about ranks and calls that are not there."""
    from paceline.record import ranks_of

    for source in sorted({one.source for one in found}):
        some = [one for one in found if one.source == source]
        absent = set(range(ranks)) - {one.rank for one in some}
        if absent:
            notes.append(f"{ranks_of(absent)} left no file: their calls are missing.")
        died = [one.rank for one in some if not one.end_ns]
        if died:
            notes.append(f"{ranks_of(died)} did not end normally; the profile shows their records "
                         "up to then.")
        for one in some:
            if one.lost:
                notes.append(f"rank {one.rank}: {one.lost} calls did not fit into its memory for "
                             "records; raise PACELINE_PROFILE_BYTES.")
            hanging = one.records[one.records["stage"] == files.ENTERED]
            if len(hanging):
                last = hanging[-1]
                kind = one.collectives.get(int(last["collective"]), "a collective")
                notes.append(f"rank {one.rank} was still in {kind}, call "
                             f"{int(last['number'])} of its communicator, when its file ends.")
