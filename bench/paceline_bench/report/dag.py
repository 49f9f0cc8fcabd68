"""`paceline report dag`: collectives in the task graph, and BSP-SGD: the documents' figures again.

A. Mamidala, arXiv 1802.06949: epoch time over workers, accuracy over time. L. Wang and others,
arXiv 1611.04255: the profile of an iteration (its table 2), and the loss over time.
"""

from paceline import _core
from paceline.schedules import unit_count

from paceline_bench.report import dag_linear, dag_replays, training
from paceline_bench.report.device import SIMULATED
from paceline_bench.report.lines import Figure, Line, Panel, Point
from paceline_bench.report.measured import nothing
from paceline_bench.report.networks import EDR

TITLE = "Collectives in the task graph"
ABOUT = (
    "Gradients become ready while the backward pass goes on, and weights are needed layer by layer "
    "in the next forward pass. This page has the figures of two publications about training loops "
    "that use this: types of a KVStore (funnel, concom, depcha; auto is this library's), and "
    "BSP-SGD by linear pipelines (LP), minimal spanning trees (MST), bidirectional exchange (BE).",
    "Simulated lines run this library's schedules, call by call, under models of the published "
    "networks. The times at which gradients are ready and weights are needed were recorded in real "
    "passes on a processor, and are scaled. Measured lines are runs of `paceline train` and "
    "`paceline train replay`.",
    "`overlap()`, which uses `auto`, is not DDP: it has none of DDP's communication hooks, no "
    "`join()`, and refuses `mixed_precision` (docs/guide/pytorch.md).",
)
WORKERS = range(1, 9)
MODES = ("funnel", "concom", "depcha", "auto")
RATIO = 3.0   # computing by communicating with the most workers
PICTURES = 50_000
BATCH = 32    # of a worker
PCIE = SIMULATED  # four K40m under one root
GPUS = 4
PUBLISHED = {"alexnet": 0.93, "googlenet": 0.264}   # seconds of computing, table 2
# Seconds of communicating, and its share, there; what the text has lost is None.
TABLE_2 = {
    ("alexnet", "MST", 1): (0.77, 45.5), ("alexnet", "BE", 1): (1.05, 52.7),
    ("alexnet", "BE", 3): (0.22, 18.9), ("alexnet", "LP", 1): (None, 8.3),
    ("alexnet", "LP", 2): (0.057, 5.7), ("alexnet", "LP", 3): (0.011, 1.2),
    ("googlenet", "MST", 1): (0.046, 14.7), ("googlenet", "BE", 1): (0.334, 55.9),
    ("googlenet", "BE", 3): (0.137, 34.3), ("googlenet", "LP", 1): (None, 7.0),
    ("googlenet", "LP", 2): (0.016, 5.8), ("googlenet", "LP", 3): (0.01, 3.7)}
WAYS = (("BE", 1), ("MST", 1), ("LP", 1), ("LP", 2), ("BE", 3), ("LP", 3))
METHODS = {"LP": "linear_pipeline", "MST": "minimum_spanning_tree", "BE": "bidirectional_exchange"}


def seconds_of_step(step, mode, ranks, costs, steps=5):
    """Seconds of one step under EDR, keys as numbered."""
    from paceline_bench.train import replay

    if ranks == 1:
        return step.compute_s
    model = costs.setdefault(ranks, replay.Simulated(ranks, ranks, EDR.machine))
    return model.seconds(step, f"{mode}:numbered", steps)


def epochs(name, workers=WORKERS):
    """Epoch time over workers: the simulated Panel of a network."""
    from paceline.kvstore import records

    from paceline_bench.train import perfect, replay

    record, most, costs = records.read(name), max(workers), {}
    sizes = [perfect.ELEMENT_BYTES * row[1] for row in record["keys"]]
    costs[most] = replay.Simulated(most, most, EDR.machine)
    step = perfect.step_of(record, RATIO * sum(map(costs[most].call_s, sizes)))
    lines = tuple(
        Line(mode, EDR, tuple(
            Point(ranks, 0, seconds_of_step(step, mode, ranks, costs) * PICTURES / (BATCH * ranks))
            for ranks in workers))
        for mode in MODES)
    bounds = {ranks: step.compute_s * PICTURES / (BATCH * ranks) for ranks in workers}
    return Panel(f"{name}, {EDR.name}, computing = {RATIO:g} x communicating with {most}", "",
                 lines, bounds, "ranks")


def call_s(collective, algorithm, is_cut, nbytes, known):
    """Seconds of a collective between the GPUs, in segments of 64 KiB if the method has them."""
    key = (collective, algorithm, nbytes)
    if key not in known:
        segments = min(max(1, -(-nbytes // (64 << 10))), 4096) if is_cut else 1
        world = _core.World(collective, algorithm, GPUS, fused=True, segments=segments,
                            window=min(segments, 64))
        count = unit_count(collective, GPUS, nbytes)
        known[key] = world.simulate(count, 4, PCIE.machine).span_s
    return known[key]


def communicating_s(name, method, algorithm, known):
    """Seconds of all calls of an iteration, one after the other: comm in table 2."""
    from paceline.kvstore import records
    from paceline.torch.bsp import METHODS as OF_BSP

    broadcast, reduce, allreduce, is_cut = OF_BSP[METHODS[method]]
    sizes = [4 * row[1] for row in records.read(name)["keys"]]
    pairs = ([("allreduce", allreduce)] if algorithm == 3
             else [("broadcast", broadcast), ("reduce", reduce)])
    return sum(call_s(*pair, is_cut, nbytes, known) for nbytes in sizes for pair in pairs)


def profile(name):
    """Table 2: the simulated Panel of a network's communication in an iteration."""
    known = {}
    lines = tuple(
        Line(f"{method} Algorithm {algorithm}", PCIE,
             (Point(GPUS, 0, communicating_s(name, method, algorithm, known)),))
        for method, algorithm in WAYS)
    return Panel(f"{name}, communication of an iteration, {GPUS} workers, {PCIE.name}", "", lines,
                 {})


def table_2(panels, files):
    """Headings, and a row for each way of each network: communicating, computing, the share."""
    yield ("network", "way", "document: communicating", "share", "here: communicating", "computing",
           "share", "")
    for name, panel in zip(PUBLISHED, panels):
        found = {line.label: line.points[0].seconds for line in panel.lines}
        for method, algorithm in WAYS:
            label = f"{method} Algorithm {algorithm}"
            published, share = TABLE_2[name, method, algorithm]
            yield (name, label, f"{published} s" if published else "not in the text",
                   f"{share} %", *shares(found[label], PUBLISHED[name]), "simulated")
    for file in files:
        if file.is_bsp and file.first.get("profile"):
            own = file.first["profile"]
            yield (f"{file.plan['model']}, {file.workers} workers", file.label, "", "",
                   *shares(own["exchange_s"], own["computing_s"]), "measured")


def shares(communicating, computing):
    """Three cells of the table."""
    return (f"{communicating:.4f} s", f"{computing:.4f} s",
            f"{100 * communicating / (communicating + computing):.1f} %")


read = training.read


def make(files):
    """All figures; `files`: what training.read() made."""
    lines = training.Lines(files)
    profiles = tuple(profile(name) for name in PUBLISHED)
    return [
        Figure("epoch time", "over 1 to 8 workers",
               "Figures 13 to 15: 50,000 pictures, 32 of each worker a step; keys are pushed from "
               "the first layer on, as in the publication's loop. The dashed line is computing "
               "alone.",
               (epochs("resnet50"), epochs("inception-bn"), *lines.epochs()),
               "" if lines.epochs() else nothing("dag"), drawn="times"),
        dag_replays.figure(files, lines.replays(), nothing("dag")),
        Figure("accuracy", "on pictures held back, over time",
               "Figure 16, which is about ImageNet; titles name the data here. The learning rate "
               "grows with the workers, as in the publication.",
               tuple(lines.accuracies()), "" if lines.accuracies() else nothing("dag"),
               drawn="curves"),
        Figure("loss", "over time",
               "Figure 5: BE, MST and LP in Algorithm 1, LP in Algorithm 2, and Algorithm 3 of LP "
               "and BE, which overlaps. All ways compute the same, so lines differ only in time.",
               tuple(lines.losses()), "" if lines.losses() else nothing("dag"), drawn="curves"),
        Figure("table 2", "what an iteration communicates",
               "The broadcast and reduce (Algorithms 1 and 2), or the allreduce (3), of every "
               "layer, one after the other, in the publication's sizes between four GPUs.",
               (*profiles, *lines.profiles()), "", drawn="bars",
               table=tuple(table_2(profiles, files))),
        *dag_linear.figures()]


FOLDER, CAMPAIGN = "build/dag", "bench/results/digits.csv"


def commands():
    """The commands that make the files: on this machine, and in the lab."""
    yield f"mkdir -p {FOLDER}"
    small = "--model resnet20 --side 8 --data digits --epochs 5 --rate 0.02"
    for ranks in (1, 2, 4, 8):
        for way in ("funnel", "concom", "depcha", "auto", "overlap"):
            yield (f"paceline train -n {ranks} {small} --batch 16 --way {way} "
                   f"--json {FOLDER}/{way}-{ranks}.json")
    for method, algorithm in WAYS:
        overlap = "-overlap" if algorithm == 3 else ""
        yield (f"paceline train -n 4 {small} --batch 16 --way bsp{algorithm}{overlap} "
               f"--collectives {method.lower()} --json {FOLDER}/{method}-{algorithm}.json")
    yield f"python bench/collect.py {CAMPAIGN} {FOLDER}/*-[1-8].json"
    yield from replay_commands()


def replay_commands():
    """Ten launches for a verdict on ResNet-50, three of the others. At 1 Gbit/s the two cores that
    the nodes share would be the limit, and not the links."""
    stores = ",".join(f"{mode}:{order}" for order in ("numbered", "ready") for mode in MODES)
    every = f"{stores},ddp:paceline,ddp:gloo,ddp:mpi"
    yield "./dev lab up 4 --rate 500mbit"
    for model, launches in (("resnet50", 10), ("inception-bn", 3), ("alexnet", 3)):
        for ratio, ways in ((1, every), (3, stores)):
            yield (f"./dev lab train --mpi mpich5 --models {model} --ratio {ratio} --launches "
                   f"{launches} --ways {ways} --json {FOLDER}/{model}-{ratio}-mpich5.json")
    for mpi in ("openmpi5", "impi"):
        yield (f"./dev lab train --mpi {mpi} --models resnet50 --launches 10 --ways "
               f"auto:ready,ddp:mpi --json {FOLDER}/resnet50-1-{mpi}.json")
    yield "./dev lab down"
