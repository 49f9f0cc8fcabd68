"""Words that the house does not use any more, each with the one that took its place.

docs/GLOSSARY.md says what the new ones mean. Words of everyday English that had a meaning of their
own here (room, seat, turn) cannot be told from the everyday ones, and are not listed.
"""

import re

RETIRED = {
    "is_straight": "is_load_store", "StraightOperation": "LoadStoreOperation",
    "PolledOperation": "MessageOperation", "Problem::near": "Problem::one_node",
    "StageView": "ShmChannel", "StageLine": "FlagLine", "StageDoor": "ExportedBuffers",
    "StageOwner": "AttachTable", "ShmStages": "ShmStaging", "LoopStages": "LoopStaging",
    "StageBallot": "", "nearest_lines": "", "Xpmem": "", "Barred": "CopyDenied",
    "owes_look": "has_unattached_peers", "find_woven": "find_interleaved",
    "woven": "interleaved", "kStreams": "kInterleave", "spread_kernel": "reduce_copy_kernel",
    "copy_past": "copy_in_nontemporal",
    "end_stream": "nontemporal_fence", "take_back": "prefetch_exclusive",
    "allreduce_shared": "allreduce_symmetric", "allreduce_sliced": "allreduce_two_shot",
    "allreduce_rings": "", "PACELINE_ATTACH": "PACELINE_SINGLE_COPY",
    "PACELINE_GROUPS": "", "PACELINE_NUMA_RANKS": "", "crowded": "oversubscribed",
    "crowding": "contention", "crowded_alpha_s": "alpha_loaded_s", "flight_s": "latency_s",
    "Patience": "Backoff", "Naps": "PollInterval", "nudge": "wake_peers", "stirs": "can_progress",
    "last_heard": "peer_status", "PlanBook": "ScheduleCache", "RecentCalls": "CallCache",
    "Circumstances": "ChoiceInputs", "BoundStep": "CompiledStep", "StoreMeeting": "StoreBootstrap",
    "flying_": "active_", "find_stranger": "find_mismatch", "free_flight": "free_op",
    "StagingRoom": "StagingLimits", "room_bytes": "slot_bytes", "room_around": "rotated_slot",
}
OLD = re.compile(r"(?<![\w:])(" + "|".join(map(re.escape, RETIRED)) + r")(?!\w)")
SPOKEN = (".cpp", ".hpp", ".h", ".c", ".inc", ".cu", ".py", ".pyi", ".md", "CMakeLists.txt")
# What tells of the past may use its words.
PAST = ("CHANGELOG.md", "docs/design/", "bench/results/", "tests/tidy/")


def retired_words(path, text, tree):
    """The list is RETIRED, and nothing else: one word has one meaning, and one place says which."""
    if not path.endswith(SPOKEN) or path.startswith(PAST):
        return
    for number, line in enumerate(text.splitlines(), 1):
        for match in OLD.finditer(line):
            new = RETIRED[match[1]]
            yield number, f"{match[1]} is retired; " + (f"say {new}" if new else "it has gone")
