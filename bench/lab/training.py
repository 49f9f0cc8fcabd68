"""Training between nodes: ./dev lab train replay | ddp, and python bench/lab/training.py record

`record` runs the real networks and writes when each gradient is ready (bench/lab/recorded).
`replay` has every rank wait as long as that and sum the gradients, in DDP's buckets, over ours,
gloo and the host's MPI in turn. `ddp` trains for real, over ours and over gloo. Each invocation is
some launches; --append adds them to those in the file, and judges all.
"""

import json
import sys
import tempfile
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import click
from rich.console import Console

from paceline.bench.host import mpi_of_host
from paceline.bench.launching import Late, run_module
from paceline.bench.links import cluster_from
from paceline.bench.provenance import provenance
from paceline.cli.common import Names

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import judging  # noqa: E402
import steps  # noqa: E402

ROOT = HERE.parents[1]
PASSES = 5
IMAGES = {"alexnet": 8, "vgg11": 2, "resnet50": 2, "resnet110": 16}
LIMIT_S, SLACK = 40, 5  # to start; and times what the steps take at least
SEED = 1
LIBRARIES = ("paceline", "gloo", "mpi", "mpi non-blocking")


class Job:
    """How the ranks are started: where, over which MPI, in which environment."""

    def __init__(self, ranks, lab, with_mpi):
        self.cluster = cluster_from(lab) if lab else None
        self.ranks = ranks or (self.cluster.nodes * self.cluster.ppn if self.cluster else 2)
        self.mpi = mpi_of_host("allreduce", self.ranks) if with_mpi else None
        self.environment = {**(self.mpi["environment"] if self.mpi else {}),
                            "PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1"}

    def about(self):
        """For the head of a file; None without an MPI."""
        cluster = {"cluster": self.cluster.about} if self.cluster else {}
        return {**self.mpi, **cluster} if self.mpi else None

    def launch(self, module, spec, least_s=10, environment=()):
        """Each rank's result; it takes least_s. A launcher hangs now and then: it may once."""
        where = self.cluster.folder if self.cluster else None
        for retry in (True, False):
            with tempfile.TemporaryDirectory(prefix="paceline-training-", dir=where) as folder:
                whole = {**spec, "folder": folder, "ranks": self.ranks,
                         "mpiexec": bool(self.mpi),
                         "cluster": asdict(self.cluster) if self.cluster else None}
                try:
                    return run_module(
                        module, whole, self.ranks, folder, None,
                        self.mpi["mpiexec"] if self.mpi else (),
                        {**self.environment, **dict(environment)},
                        LIMIT_S + SLACK * least_s)
                except Late:
                    if not retry:
                        raise


def bound_of(job):
    """How long the links need for so many bytes; without links nothing is known."""
    if not job.cluster:
        return lambda nbytes: 0.0
    return lambda nbytes: job.cluster.bound_s("allreduce", job.ranks, nbytes) or 0.0


def steps_of(models, ratio, compute_s, bound_s):
    """{name: Step}: so much to compute, or `ratio` times what the links need for all gradients."""
    found = {}
    for name in models:
        record = steps.read(name)
        nbytes = sum(row[1] for row in record["gradients"]) * steps.ELEMENT_BYTES
        found[Path(name).stem] = steps.step_of(record, compute_s or ratio * bound_s(nbytes))
    return found


def begun(path, head, plan, append):
    """The content of the file so far, or of a new one; refuses to add to another plan's."""
    if path and not path.parent.is_dir():  # nodes of the lab have a /tmp of their own
        raise click.UsageError(f"{path.parent} is no folder here; name one of this tree.")
    plan = json.loads(json.dumps(plan))  # as it is in a file
    if append and path and path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        if before["plan"] != plan:
            raise click.UsageError(f"{path.name} is of another plan; leave out --append.")
        return before
    return {**head, "plan": plan, "summary": {}, "launches": []}


def run(content, launches, launch, judge, path):
    """So many launches, each in the file as soon as it has ended; then the table. Fails where
    figures were refused."""
    for _ in range(launches):
        date = datetime.now().astimezone().isoformat(timespec="seconds")
        content["launches"].append({"date": date, **launch()})
        content["summary"] = judge(content)
        if path:
            write(path, content)
    out = Console(width=None if sys.stdout.isatty() else 140)
    out.print(judging.table(content["summary"]))
    notes = list(dict.fromkeys(note for one in content["launches"] for note in one["notes"]))
    for note in notes:
        out.print(note, style="yellow", soft_wrap=True, markup=False, highlight=False)
    if path:
        out.print(f"Wrote {path}", soft_wrap=True, highlight=False)
    sys.exit(1 if notes else 0)


def write(path, content):
    """Where this tree lies is nobody else's business."""
    text = json.dumps(content, indent=1).replace(f"{ROOT}/", "")
    path.write_text(text + "\n", encoding="utf-8")


def head_of(job, words):
    """Machine, versions, MPI, and the command as it is typed."""
    head = provenance(job.about())
    place = (f"./dev lab train --mpi {job.cluster.about['mpi']}" if job.cluster
             else "python bench/lab/training.py")
    return {**head, "command": " ".join([place, *words])}


def typed():
    """The words of this command line that a person typed; those about the lab are added."""
    words, found = iter(sys.argv[1:]), []
    for word in words:
        if word == "--lab":
            next(words)
        else:
            found.append(word)
    return found


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def main():
    """Training between nodes, replayed and real."""


@main.command()
@click.option("--models", default=",".join(IMAGES), type=Names(), show_default=True)
@click.option("--passes", default=PASSES, show_default=True, type=int)
def record(models, passes):
    """Runs the real networks on this machine; when each gradient is ready goes into files."""
    import models as networks
    import recording

    for name in models:
        images, labels = networks.batch_of(name, IMAGES[name])
        found = recording.recorded(networks.made(name), images, labels, passes)
        head = provenance()
        content = {"model": name, "input": list(images.shape), "passes": passes, "threads": 1,
                   "parameters": sum(row[1] for row in found["gradients"]),
                   **{key: head[key] for key in ("machine", "date", "versions")},
                   "command": " ".join(["python bench/lab/training.py", *sys.argv[1:]]), **found}
        rows = content.pop("gradients")
        text = json.dumps(content, indent=1)[:-2]
        lines = ",\n  ".join(json.dumps(row) for row in rows)
        steps.RECORDED.mkdir(exist_ok=True)
        path = steps.RECORDED / f"{name}.json"
        path.write_text(f'{text},\n "gradients": [\n  {lines}\n ]\n}}\n', encoding="utf-8")
        click.echo(f"{name}: {content['parameters']:,} parameters, backward "
                   f"{content['backward_s']:.3f} s; wrote {path.relative_to(ROOT)}")


def shared(command):
    """The options of replay and ddp."""
    for option in reversed((
        click.option("--launches", default=1, show_default=True, type=int),
        click.option("--rounds", default=1, show_default=True, type=int,
                     help="Steps of each library in a launch that count."),
        click.option("--ranks", "-n", default=0, type=int, help="[default: all places, else 2]"),
        click.option("--lab", type=click.Path(exists=True), hidden=True),
        click.option("--mpi/--no-mpi", "with_mpi", default=True, show_default=True,
                     help="In the processes of the MPI that PACELINE_MPI names."),
        click.option("--json", "path", type=click.Path(dir_okay=False, path_type=Path)),
        click.option("--append", is_flag=True, help="Add to the launches in that file."),
    )):  # fmt: skip
        command = option(command)
    return command


@main.command()
@click.option("--models", default="resnet110,resnet50", type=Names(), show_default=True,
              help="Of bench/lab/recorded, or files of that form.")
@click.option("--ratio", default=1.0, show_default=True,
              help="Time to compute in a step, by what the links need for its gradients.")
@click.option("--compute-s", default=0.0, help="That time itself; where there are no links.")
@click.option("--images", default=32, show_default=True, help="That a step of a rank stands for.")
@click.option("--libraries", default=",".join(LIBRARIES), type=Names(), show_default=True,
              help="Those that take turns; without an MPI the first two.")
@shared
def replay(models, ratio, compute_s, images, libraries, launches, rounds, ranks, lab, with_mpi,
           path, append):
    """Sums recorded gradients when they are due, over ours, gloo and the MPI in turn."""
    if not lab and not compute_s:
        raise click.UsageError("--compute-s: without a lab there are no links to go by.")
    if unknown := set(libraries) - set(LIBRARIES):
        raise click.UsageError(f"--libraries: {', '.join(sorted(unknown))}: no such library.")
    job = Job(ranks, lab, with_mpi)
    bound_s = bound_of(job)
    made = steps_of(models, ratio, compute_s, bound_s)
    least = {name: step.least_s(bound_s) for name, step in made.items()}
    plan = {"ranks": job.ranks, "ratio": None if compute_s else ratio, "images": images,
            "rounds": rounds, "least_s": least,
            "steps": {name: asdict(step) for name, step in made.items()}}
    least_s = rounds * len(libraries) * sum(least.values())
    spec = {"steps": plan["steps"], "rounds": rounds, "libraries": list(libraries)}

    def launch():
        ranks_found = job.launch("replay_rank", spec, least_s)
        return judging.replayed(ranks_found, made, bound_s, job.cluster)

    content = begun(path, head_of(job, typed()), plan, append)
    run(content, launches, launch, judging.of_replay, path)


@main.command()
@click.option("--model", default="resnet110", show_default=True)
@click.option("--images", default=4, show_default=True, help="Of a step of a rank.")
@click.option("--warm-up", default=2, show_default=True)
@shared
def ddp(model, images, warm_up, launches, rounds, ranks, lab, with_mpi, path, append):
    """Trains a real network on pictures by chance, over ours, gloo and the MPI in turn."""
    job = Job(ranks, lab, with_mpi)
    plan = {"ranks": job.ranks, "model": model, "images": images, "rounds": rounds,
            "warm_up": warm_up, "seed": SEED}
    content = begun(path, head_of(job, typed()), plan, append)
    run(content, launches, lambda: judging.trained(job.launch("ddp_rank", plan)), judging.of_ddp,
        path)


if __name__ == "__main__":
    main()
