"""The time of a call by activity and rank, as a table."""

from collections import Counter
from dataclasses import dataclass

from .trace import LABELS, kind, kinds
from .units import human_bytes, unit_of

REST = "rest"                  # starting, ending, and what was not recorded
WIDTHS = (8, 9, 9, 11)         # of a cell's share, time, bytes and rate, in characters
SHARE = 9                      # of a cell that holds a share alone, under "rank 10"
# A rank's own work comes before its waits at the same time.
FIRST = ("reduce", "copy", "compute", "send", "recv", "wait", "signal")


@dataclass
class Share:
    """Time and bytes of one activity in a rank's call."""

    seconds: float = 0.0
    moved: float = 0               # bytes read and written meanwhile; 0: not counted

    @property
    def rate(self):
        """Bytes a second; 0 if none are counted."""
        return self.moved / self.seconds if self.seconds > 0 else 0.0


def spent(trace, rank):
    """{kind: Share} of a rank's time from arrival to exit. Each moment counts for one activity."""
    came, left = trace.arrival_s[rank], trace.exit_s[rank]
    shares, changes, urgency = {}, [], {}
    for event in (e for e in trace.events if e.rank == rank):
        name = kind(event)
        shares.setdefault(name, Share()).moved += event.moved
        urgency[name] = (FIRST.index(event.activity), name)
        for time_s, change in ((event.begin_s, 1), (event.end_s, -1)):
            changes.append((min(max(time_s, came), left), change, name))
    rest, active, now = Share(), Counter(), came
    for time_s, change, name in sorted(changes):
        busy = min((n for n in active if active[n] > 0), key=urgency.get, default=None)
        shares.get(busy, rest).seconds += time_s - now
        active[name] += change
        now = time_s
    rest.seconds += left - now
    return {**shares, REST: rest}


def mean(ranks):
    """The mean of the results of spent() for several ranks."""
    out = {}
    for shares in ranks:
        for name, share in shares.items():
            sum_ = out.setdefault(name, Share())
            sum_.seconds += share.seconds / len(ranks)
            sum_.moved += share.moved / len(ranks)
    return out


def cells(share, total_s):
    """Share, time, bytes and rate as texts."""
    unit, scale = unit_of(share.seconds)
    part = f"{100 * share.seconds / total_s:.1f} %" if total_s > 0 else ""
    taken = f"{share.seconds / scale:.3g} {unit}" if share.seconds >= 1e-9 else ""
    moved = human_bytes(share.moved) if share.moved else ""
    return part, taken, moved, f"{share.rate / 1e9:.3g} GB/s" if share.rate else ""


def table(trace, room):
    """[(name, [(text, width)])]: the lines of the table, the heading first, in `room` characters.

    Shows all figures of all ranks. If that is too wide, it shows the share of each rank and the
    mean of all ranks; if that is too wide, too, the mean alone.
    """
    ranks = [spent(trace, rank) for rank in range(trace.ranks)]
    columns = [(f"rank {rank}", shares, WIDTHS) for rank, shares in enumerate(ranks)]
    if len(ranks) * sum(WIDTHS) > room:
        if len(ranks) * SHARE + sum(WIDTHS) > room:
            columns = []
        columns = [(head, shares, (SHARE,)) for head, shares, _ in columns]
        columns.append((f"mean of {len(ranks)} ranks", mean(ranks), WIDTHS))
    lines = [("", [(head, sum(widths)) for head, _, widths in columns])]
    for name in [*kinds(trace), REST]:
        line = []
        for _, shares, widths in columns:
            total_s = sum(share.seconds for share in shares.values())
            line += zip(cells(shares.get(name, Share()), total_s), widths)
        lines.append((LABELS.get(name, name), line))
    return lines
