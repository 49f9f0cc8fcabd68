"""`paceline report pipelining`: the figures of a publication about pipelined collectives, again.

A. Castelló and others: the effect of cutting one allreduce into several that run at once, over
Open MPI, MPICH and Intel MPI. Its figures 1 to 7 and 11 to 14 are here; 8 to 10 are about training.
"""

from dataclasses import replace

from paceline_bench.report import measured, networks
from paceline_bench.report.lines import Figure
from paceline_bench.report.simulated import Way, line, over_ranks, panel

TITLE = "Pipelining of collectives"
ABOUT = (
    "The time of an allreduce depends on the algorithm, and on segments: the arithmetic of one "
    "segment overlaps with the transfer of the next. This page has figures 1 to 7 and 11 to 14 of "
    "a publication that measured this with several concurrent MPI_Iallreduce. Lines are this "
    "library's schedules, simulated under models of the published networks, and measurements from "
    "files.",
    "Rates are bytes of the message over time, as in the publication; ranks send more bytes than "
    "that. The bound is the rate when every node sends and receives all the time, without "
    "arithmetic. In the model blocking and non-blocking collectives are one line; MPIs differ "
    "there, so measurements have both.",
)
SEGMENTS = (1, 2, 4, 6, 8)
SEGMENT_BYTES = tuple(n << 20 for n in (1, 2, 4, 8, 32))
LARGEST, MOST_RANKS = 1 << 30, 1024
ALLREDUCE = {"that send 2 (p-1)/p of the message": (
                 "ring", "rabenseifner", "circulant", "double_binary_tree", "dual_root"),
             "that send more": ("ring", "recursive_doubling", "binomial", "chain")}
SCALED_BYTES = 64 << 20
# Simulated up to so many ranks: with p ranks a ring of s segments has 2 s p (p - 1) messages.
GROWING = {Way("allreduce", "ring"): MOST_RANKS, Way("allreduce", "ring", 4): 256,
           Way("allreduce", "rabenseifner"): MOST_RANKS,
           Way("allreduce", "rabenseifner", 4): MOST_RANKS,
           Way("allreduce", "circulant"): MOST_RANKS,
           Way("allreduce", "recursive_doubling"): MOST_RANKS}


def sizes(largest):
    """1 MiB, 2 MiB and so on."""
    return [1 << power for power in range(20, largest.bit_length())]


def cut(collective, algorithm):
    """One algorithm in the numbers of segments of the publication."""
    return [Way(collective, algorithm, segments) for segments in SEGMENTS]


def algorithms(files, largest):
    """Figure 1."""
    made = []
    for which, names in ALLREDUCE.items():
        ways = [Way("allreduce", name) for name in names]
        of_ranks = [panel(ways, ranks, sizes(largest), networks.EDR) for ranks in (8, 9)]
        made += [replace(one, title=f"{one.title}: {which}") for one in of_ranks]
    return figure(
        "figure 1", "which algorithm",
        "Without segments. Long messages need an algorithm that sends 2 (p-1)/p of the message: "
        "ring, rabenseifner and circulant if p is a power of two. With 9 ranks, algorithms that "
        "halve the ranks take longer for the ninth; the ring does not. The time of circulant with "
        "9 ranks depends on the division of the message: blocks that differ by one element are "
        "sent in another order.",
        made, measured.panels(files, "allreduce", measured.whole))


def fixed_size(files, largest):
    """Figure 2."""
    made = []
    for name in ("rabenseifner", "ring"):
        ways = [Way("allreduce", name),
                *(Way("allreduce", name, segment_bytes=size) for size in SEGMENT_BYTES)]
        made += [panel(ways, ranks, sizes(largest), networks.EDR) for ranks in (8, 9)]
    return figure(
        "figure 2", "segments of a fixed size",
        "1 to 32 MiB, all at once. Segments that are too short repeat their start-up many times, "
        "however long the message is; the publication therefore prefers a fixed number.",
        made, measured.panels(files, "allreduce", lambda file, row: measured.by_size(file, row)
                              and cuts_by_size(file, row)))


def cuts_by_size(file, row):
    """True in a file in which something is cut so."""
    return any(other.get("segment_bytes") for other in file.of(row["collective"]))


def cuts_by_number(file, row):
    """True in a file in which something is cut so, and that is not about arithmetic alone."""
    return not measured.with_and_without(file, row) and any(
        (other["segments"] or 0) > 1 and not other.get("segment_bytes")
        for other in file.of(row["collective"]))


def fixed_number(files, largest):
    """Figure 3."""
    made = [panel(cut("allreduce", name), ranks, sizes(largest), networks.EDR)
            for name in ("rabenseifner", "ring") for ranks in (8, 9)]
    return figure(
        "figure 3", "a fixed number of segments",
        "2, 4, 6 and 8 segments at once against one. Two segments already give most of the gain: "
        "one is added up while the other is sent.", made,
        measured.panels(files, "allreduce", lambda file, row: measured.by_number(file, row)
                        and cuts_by_number(file, row)))


def source_of_gains(files, largest):
    """Figure 4: the same without arithmetic."""
    made = []
    for ranks in (8, 9):
        shown = panel([Way("allreduce", "ring"), Way("allreduce", "ring", 4)], ranks,
                      sizes(largest), networks.EDR)
        alone = tuple(line(way, ranks, sizes(largest), networks.EDR_ALONE,
                           f"{way.label}, no reduce")
                      for way in (Way("allreduce", "ring"), Way("allreduce", "ring", 4)))
        made.append(replace(shown, lines=shown.lines + alone))
    return figure(
        "figure 4", "where the gain comes from",
        "Each algorithm also without its arithmetic (\"no reduce\", whose results are wrong by "
        "design). The difference of both lines is arithmetic that no transfer hides: in the "
        "publication 28 to 37 % of the time without segments, and less than 14 % with four. Here, "
        f"simulated: {shares(made)}.",
        made, measured.panels(files, "allreduce", measured.with_and_without))


def shares(made):
    """The share of the time of the longest message that is not overlapped, in words."""
    words = []
    for shown in made:
        last = {one.label: one.points[-1] for one in shown.lines}
        for label in ("ring", "ring x 4"):
            share = 1 - last[f"{label}, no reduce"].seconds / last[label].seconds
            words.append(f"{100 * share:.1f} % of {label} with {last[label].ranks} ranks")
    return ", ".join(words)


def other_collectives(files, largest):
    """Figures 5 to 7."""
    table = (
        ("figure 5", "allgather", "linear",
         "A negative result, as in the publication: in the linear algorithm every rank sends to "
         "all others at once, without arithmetic. Segments are more messages, and add no overlap. "
         "Measured lines may gain if an MPI announces long messages but not segments."),
        ("figure 6", "broadcast", "chain",
         "In a chain a rank passes a segment on while the next one comes: without segments the "
         "message travels p - 1 times, one after the other."),
        ("figure 7", "reduce_scatter", "ring",
         "The gain comes from the arithmetic, as in allreduce. The publication has Open MPI's only "
         "algorithm, a reduction to one rank and a linear scatter, which gains less; this library "
         "has no such algorithm."))
    return [figure(
        name, f"{collective}, {algorithm}", about,
        [panel(cut(collective, algorithm), ranks, sizes(largest), networks.EDR)
         for ranks in (7, 8)],
        measured.panels(files, collective, measured.by_number))
        for name, collective, algorithm, about in table]


def libraries(files):
    """Figures 11 and 12: the MPIs' own calls. There is no model of an MPI."""
    return [
        figure("figure 11", "MPICH and Intel MPI, their own choice",
               "Blocking, non-blocking and in several non-blocking calls at once.", [],
               measured.panels(files, "allreduce", measured.of_mpi("MPICH", "Intel MPI"))),
        figure("figure 12", "Open MPI, its own choice",
               "The same. The publication has version 4.0, whose non-blocking allreduce has no "
               "choice of algorithm; the title of a panel has the version of its file. Files made "
               "with --separate have separate inputs and outputs, as in the publication: in place, "
               "the non-blocking allreduce of Open MPI is a binomial tree.", [],
               measured.panels(files, "allreduce", measured.of_mpi("Open MPI")))]


def other_networks(largest):
    """Figures 13 and 14, for which there is no lab."""
    none = "Only simulated: the lab has neither these links nor so many nodes at their rate."
    return [
        replace(figure(
            "figure 13", "an older network, 8 and 15 nodes",
            "Slower links and slower processors give the same result. With 15 ranks rabenseifner "
            "loses half of its rate, since it halves the ranks.",
            [panel(cut("allreduce", name), ranks, sizes(largest), networks.QDR)
             for name in ("rabenseifner", "ring") for ranks in (8, 15)], []), missing=none),
        replace(figure(
            "figure 14", "groups of nodes, 30 and 32 ranks",
            "A machine like a dragonfly: links between groups are scarce. The model has one port "
            "for each group, and no routes or contention on them. A ring crosses each border once "
            "and keeps most of its rate; exchanges between distant ranks all share the borders.",
            [panel([Way("allreduce", name, segments) for name in ("ring", "rabenseifner")
                    for segments in (1, 4, 8)], ranks, sizes(largest),
                   networks.DRAGONFLY) for ranks in (30, 32)], []), missing=none)]


def growing(most_ranks):
    """Up to 1024 ranks, beyond the publication."""
    ranks = [1 << power for power in range(3, most_ranks.bit_length())]
    ways = {way: [p for p in ranks if p <= most] for way, most in GROWING.items()}
    lacking = ("Left out: more than four segments, and a ring in four segments beyond 256 ranks. "
               "Each would take longer to simulate than all the rest.")
    return replace(figure(
        "growth", "on to 1024 ranks",
        "64 MiB. A ring of p ranks sends 2 (p-1) times: its blocks become too short for their "
        "start-up, and rabenseifner, which sends 2 log p times, is faster.",
        [over_ranks(ways, SCALED_BYTES, networks.EDR)], []), missing=lacking)


def figure(name, title, about, simulated, found):
    """A Figure that says so if nothing was measured."""
    return Figure(name, title, about, (*simulated, *found),
                  "" if found else measured.nothing("pipelining"))


def make(files, largest=LARGEST, most_ranks=MOST_RANKS):
    """All figures; `files`: Measured."""
    return [algorithms(files, largest), fixed_size(files, largest), fixed_number(files, largest),
            source_of_gains(files, largest), *other_collectives(files, largest),
            *libraries(files), *other_networks(largest), growing(most_ranks)]


FOLDER = "build/pipelining"
CAMPAIGN = "bench/results/pipelining.csv"
MPIS = ("openmpi4", "openmpi5", "mpich5", "impi")
SIZED = "openmpi5"   # whose segments of a fixed size are measured: published were one MPI's
IN_NUMBER, IN_SIZE = "--sizes 1MiB,4MiB --repeats 3", "--sizes 1MiB,8MiB --repeats 3"


def commands():
    """The commands that make the campaign, in the lab. Allreduce has input and output in two
    buffers, as in the publication's listings: in place, Open MPI's non-blocking one is a binomial
    tree."""
    yield f"mkdir -p {FOLDER}"
    yield "./dev lab up 9 --rate 200mbit"
    for mpi in MPIS:
        for ranks in (8, 9):
            allreduce = f"./dev lab bench allreduce --separate --mpi {mpi} -n {ranks}"
            file = f"--json {FOLDER}/{mpi}-{ranks}"
            yield (f"{allreduce} {IN_NUMBER} --algorithm ring,rabenseifner,circulant,"
                   f"recursive_doubling --segments 1 --peer-segments 1 {file}-whole.json")
            yield (f"{allreduce} {IN_NUMBER} --algorithm ring --segments 1,2,4,6,8 "
                   f"--peer-segments 1,2,4,6,8 {file}-number.json")
            if mpi == SIZED:
                yield (f"{allreduce} {IN_SIZE} --algorithm ring --segments 1,1MiB,2MiB,4MiB "
                       f"--peer-segments 1,1MiB,2MiB,4MiB {file}-size.json")
    for ranks in (8, 9):
        yield (f"./dev lab bench allreduce -n {ranks} {IN_NUMBER} --algorithm ring --segments 1,4 "
               f"--no-reduce --json {FOLDER}/no-reduce-{ranks}.json")
    for collective, algorithm in (("allgather", "linear"), ("broadcast", "chain"),
                                  ("reduce_scatter", "ring")):
        for ranks in (7, 8):
            forms = "" if collective == "reduce_scatter" else " --peer-segments 1,2,4,6,8"
            yield (f"./dev lab bench {collective} --mpi openmpi5 -n {ranks} {IN_NUMBER} "
                   f"--algorithm {algorithm} --segments 1,2,4,6,8{forms} "
                   f"--json {FOLDER}/{collective}-{ranks}.json")
    yield "./dev lab down"
    yield f"python bench/collect.py {CAMPAIGN} {FOLDER}/*.json"
