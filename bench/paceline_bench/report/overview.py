"""`paceline report` without a name: lists the reports, and the report of each figure or table."""

from dataclasses import dataclass

from rich.table import Table

# name: what it is about. In the order in which `paceline report` lists them.
REPORTS = {
    "pipelining": "segments, algorithms, networks, other collectives",
    "ring": "a pipelined ring, an MPI's allreduce, a plain ring",
    "device": "linear pipelines between devices",
    "dag": "KVStore and BSP-SGD: epochs, accuracy, loss, profile",
    "training": "training with Horovod and DDP, over other allreduces",
    "arrival": "ranks that enter at different times",
}
DOCUMENTS = {
    "pipelining": "A. Castelló and others: pipelined MPI allreduce in training, 2021",
    "arrival": "P. Alizadeh and others: process arrival patterns, deep learning",
    "linear": "L. Wang and others: efficient communications, arXiv 1611.04255",
    "graph": "A. Mamidala: MPI collectives in task graphs, arXiv 1802.06949",
    "ring": "Y. Ueno: technologies behind distributed deep learning, 2018",
}
DRAWING, LISTING, FORMULAS = "a drawing", "code", "formulas"
ELSEWHERE = ("Instead of drawings: paceline draw shows every schedule. Instead of formulas: "
             "paceline explain has costs in numbers.")
NAME_COLUMNS, SHOWS_COLUMNS = 11, 31


@dataclass(frozen=True)
class Row:
    """A figure or table. `reports`: names; if there are none, `why`."""

    document: str  # a key of DOCUMENTS
    name: str
    shows: str
    reports: tuple = ()
    why: str = ""


def rows_of(document, *rows):
    """Rows; a name like "figure 7" or "figures 2-4", its contents, and a report, or reasons."""
    found = []
    for names, shows, covered in rows:
        word, _, numbers = names.partition(" ")
        first, _, last = numbers.partition("-")
        many = range(int(first), int(last) + 1) if last else [first]
        reports = tuple(covered.split(", ")) if covered.split(", ")[0] in REPORTS else ()
        why = "" if reports else covered
        found += [Row(document, f"{word.removesuffix('s')} {number}", shows, reports, why)
                  for number in many]
    return found


ROWS = (
    *rows_of(
        "pipelining",
        ("table 1", "costs of four algorithms", FORMULAS),
        ("table 2", "parameters and flops", "training"),
        ("figure 1", "algorithms of three MPIs", "pipelining"),
        ("figure 2", "segments of a fixed size", "pipelining"),
        ("figure 3", "a fixed number of segments", "pipelining"),
        ("figure 4", "with and without arithmetic", "pipelining"),
        ("figure 5", "allgather", "pipelining"),
        ("figure 6", "broadcast", "pipelining"),
        ("figure 7", "reduce-scatter", "pipelining"),
        ("figure 8", "messages by size", "training"),
        ("figure 9", "speed-up of training", "training"),
        ("figure 10", "training with GPUs, and NCCL", "training"),
        ("figure 11", "MPICH and Intel MPI", "pipelining"),
        ("figure 12", "Open MPI 4.0", "pipelining"),
        ("figure 13", "InfiniBand QDR", "pipelining"),
        ("figure 14", "a dragonfly of 32 nodes", "pipelining")),
    *rows_of(
        "arrival",
        ("figure 1", "what worst and average mean", DRAWING),
        ("figure 2", "collectives that training calls", "arrival"),
        ("figure 3", "sizes of its allreduces", "arrival"),
        ("figure 4", "imbalance call by call", "arrival"),
        ("figures 5-6", "a run, step by step", "arrival"),
        ("figure 7", "the dynamic leader, 32 ranks", "arrival"),
        ("figure 8", "the chain by arrival, 4 ranks", "arrival"),
        ("figures 9-10", "images/s of 8 to 128 GPUs", "arrival"),
        ("tables 1-2", "imbalance by size", "arrival"),
        ("table 3", "hierarchical and flat", "arrival")),
    *rows_of(
        "linear",
        ("figure 1", "overlap, as a sketch", DRAWING),
        ("figure 2", "blocks on their way", DRAWING),
        ("figure 3", "collectives by size, 4 GPUs", "device"),
        ("figure 4", "over 2 to 6 GPUs", "device"),
        ("figure 5", "loss over time", "dag"),
        ("table 1", "costs of LP, MST and BE", "device, dag"),
        ("table 2", "profile of an iteration", "dag"),
        ("theorem 3.1", "LP against MST and BE", "device, dag")),
    *rows_of(
        "graph",
        ("figures 1-2", "task graphs", DRAWING),
        ("figure 3", "a training loop", LISTING),
        ("figure 4", "a store of keys", LISTING),
        ("figures 5-7", "funneled", LISTING),
        ("figures 8-9", "concurrent collectives", LISTING),
        ("figures 10-12", "dependency chaining", LISTING),
        ("figure 13", "epochs of CIFAR, ResNet-50", "dag"),
        ("figure 14", "epochs of Inception-BN", "dag"),
        ("figure 15", "epochs of ImageNet, ResNet-50", "dag"),
        ("figure 16", "accuracy over time", "dag")),
    *rows_of(
        "ring",
        ("figure 1", "what an allreduce does", DRAWING),
        ("figures 2-5", "a ring, step by step", DRAWING),
        ("figure 6", "256 MB, five libraries", "ring, device")),
)


def reports():
    """The table of reports."""
    out = Table.grid(padding=(0, 2, 0, 0))
    for name, about in REPORTS.items():
        out.add_row(f"paceline report {name}", about)
    return out


def tables():
    """For each document its title, and a table with a row for each of its figures and tables."""
    for document, title in DOCUMENTS.items():
        out = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
        out.add_column(no_wrap=True, width=NAME_COLUMNS)
        out.add_column(no_wrap=True, width=SHOWS_COLUMNS)
        out.add_column()
        for row in ROWS:
            if row.document == document:
                out.add_row(row.name, row.shows,
                            ", ".join(row.reports) or f"not covered: {row.why}")
        yield title, out
