"""Compares flight records of several ranks: ranks that made another call, are missing, or wait.

Reads the files that src/runtime/diagnostics/record.hpp writes.
"""

from collections import defaultdict
from pathlib import Path

from paceline.errors import UsageError
from paceline.files import member, read_json, whole, wholes
from paceline.files import number as finite

MOST_RANKS = 65536
NAMED = 8           # ranks that a sentence lists


def read(folder):
    """The records of a folder, by rank. Raises UsageError if there are none, or one is damaged."""
    found = {}
    for path in sorted(Path(folder).glob("rank-*.json")):
        try:
            record = read_json(path, "flight record", checked)
        except UsageError as error:
            raise UsageError(f"doctor: {error} Remove it.") from error
        if record["rank"] in found:
            raise UsageError(f"doctor: {path} is of rank {record['rank']}, as a file before it is; "
                             "remove one of them.")
        found[record["rank"]] = record
    if not found:
        raise UsageError(f"doctor: no flight record (rank-<rank>.json) in '{folder}'; set "
                         "PACELINE_RECORD_DIR to it in all ranks and let it happen again.")
    return found


def checked(record):
    """The record, after a check of all fields that are read below."""
    ranks = whole(record, "ranks", 1, MOST_RANKS)
    whole(record, "rank", 0, ranks - 1)
    record["reason"] = plain(member(record, "reason", str))
    for one in member(record, "communicators", list):
        size = len(wholes(one, "ranks", 0, ranks - 1))
        whole(one, "rank", 0, size - 1)
        member(one, "context", str)
        one["called_at"] = plain(member(one, "called_at", str, ""))
        one["broken"] = member(one, "broken", str, "")
        for call in member(one, "calls", list):
            whole(call, "number", 0, 1 << 32)
            call["call"] = plain(member(call, "call", str))
            member(call, "fingerprint", str)
            if member(call, "under_way", bool, False):
                call["waited_s"] = finite(call, "waited_s")
                wholes(call, "waits_for", 0, size - 1, [])
    return record


def plain(text):
    """The text without control characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def ranks_of(ranks):
    """'rank 3', 'ranks 0, 1 and 2', 'ranks 0, 1, 2 and 61 others'."""
    ranks = sorted(ranks)
    words = [str(rank) for rank in ranks[:NAMED]]
    if len(ranks) > NAMED:
        words.append(f"{len(ranks) - NAMED} others")
    if len(words) == 1:
        return f"rank {words[0]}"
    return f"ranks {', '.join(words[:-1])} and {words[-1]}"


def findings(records):
    """Sentences about records by rank, the most telling first."""
    ranks = max(record["ranks"] for record in records.values())
    by_context = defaultdict(dict)
    for record in records.values():
        for one in record["communicators"]:
            by_context[one["context"]][one["rank"]] = one
    communicators = sorted(by_context.values(), key=lambda c: -len(next(iter(c.values()))["ranks"]))
    said = []
    for part in (divergence, places, lag, waiting):
        for communicator in communicators:
            said += part(communicator)
    missing = set(range(ranks)) - set(records)
    if missing:
        said.append(f"{ranks_of(missing)} left no record: lost, or in no call when the others "
                    "wrote theirs.")
    return said or ["The ranks agree: the same calls, in the same order, none under way."]


def name_of(communicator):
    """A communicator's name in sentences."""
    size = len(next(iter(communicator.values()))["ranks"])
    return f"communicator of {size} rank{'s' if size > 1 else ''}"


def divergence(communicator):
    """The first call that differs between ranks."""
    by_number = defaultdict(lambda: defaultdict(list))
    texts = {}
    for rank, one in communicator.items():
        for call in one["calls"]:
            by_number[call["number"]][call["fingerprint"]].append(rank)
            texts[call["fingerprint"]] = call["call"]
    for number in sorted(by_number):
        kinds = sorted(by_number[number].items(), key=lambda kind: -len(kind[1]))
        if len(kinds) < 2:
            continue
        alike = len({texts[print_] for print_, _ in kinds}) == 1
        sides = "; ".join(f"{ranks_of(ranks)}: {texts[print_]}" for print_, ranks in kinds)
        why = (" by different algorithms, or on different places in shared memory" if alike else "")
        return [f"{name_of(communicator)}: call #{number} differs{why}: {sides}."]
    return []


def places(communicator):
    """The lines of the ranks' programs when the communicator broke. A rank that was in no call then
    has the line at which it got the error later."""
    by_place, later = defaultdict(list), defaultdict(list)
    for rank, one in communicator.items():
        if one.get("called_at"):
            came_later = one["broken"] and not any(call.get("under_way") for call in one["calls"])
            (later if came_later else by_place)[one["called_at"]].append(rank)
    said = "; ".join(
        [f"{ranks_of(ranks)} at {place}" for place, ranks in by_place.items()]
        + [f"{ranks_of(ranks)} {'was' if len(ranks) == 1 else 'were'} in no call, and came to "
           f"{place} later" for place, ranks in later.items()])
    return [f"{name_of(communicator)}: when it broke, {said}."] if said else []


def lag(communicator):
    """Ranks that have made fewer calls than the others."""
    last = {rank: one["calls"][-1] if one["calls"] else None for rank, one in communicator.items()}
    reached = {rank: call["number"] if call else 0 for rank, call in last.items()}
    furthest = max(reached.values())
    said = []
    for number in sorted(set(reached.values()) - {furthest}):
        behind = [rank for rank in reached if reached[rank] == number]
        call = last[behind[0]]
        doing = f"#{number}, {call['call']}" if call else "no call at all"
        missed = next((f"went on with #{number + 1}, {one['call']}"
                       for others in communicator.values() for one in others["calls"]
                       if one["number"] == number + 1), "")
        far = f"came to #{furthest}" if furthest > number + 1 or not missed else ""
        said.append(f"{name_of(communicator)}: {ranks_of(behind)} came only to {doing}; others "
                    f"{' and '.join(filter(None, (missed, far)))}.")
    return said


def waiting(communicator):
    """Ranks that wait, with the ranks that they wait for, the longest wait first."""
    said = []
    for rank, one in sorted(communicator.items()):
        for call in one["calls"]:
            if not call.get("under_way"):
                continue
            whom = call.get("waits_for") or []
            waits = f"waits for {ranks_of(whom)}" if whom else "is under way"
            said.append((call["waited_s"], f"{name_of(communicator)}: rank {rank} {waits} in "
                         f"#{call['number']}, {call['call']}, for {call['waited_s']:.1f} s."))
    return [sentence for _, sentence in sorted(said, key=lambda pair: -pair[0])]


def reasons(records):
    """The reasons for which ranks wrote records: (ranks, reason), the most frequent first."""
    by_reason = defaultdict(list)
    for rank, record in records.items():
        by_reason[record["reason"]].append(rank)
    return sorted(((ranks, reason) for reason, ranks in by_reason.items()),
                  key=lambda pair: -len(pair[0]))
