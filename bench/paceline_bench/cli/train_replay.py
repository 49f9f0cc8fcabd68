"""`paceline train record` and `paceline train replay`."""

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

import click
from paceline.cli.common import Names, Number, console, file_option
from paceline.errors import Error

RECORDED = "resnet50"


@click.command("record", short_help="Record when layers begin and gradients are ready.")
@click.option("--models", default=RECORDED, show_default=True, type=Names(),
              help="Names of networks, as `paceline train --model` takes them.")
@click.option("--images", default=2, show_default=True, type=Number(1, 4096),
              help="Number of images in a pass.")
@click.option("--passes", default=5, show_default=True, type=Number(1, 1000),
              help="Number of passes; the files have their medians.")
@click.option("--folder", default=".", type=click.Path(file_okay=False, exists=True,
                                                       path_type=Path), show_default=True,
              help="Folder for the files MODEL.json.")
def record(models, images, passes, folder):
    """Record when each layer begins and each gradient is ready in real passes.

    `paceline train replay --models MODEL.json` reads the file.

    \b
    paceline train record --models resnet110,alexnet
    """
    from paceline.provenance import provenance

    from paceline_bench.networks import models as networks
    from paceline_bench.train import recording

    for name in models:
        networks.known(name)
    for name in models:
        inputs, labels = networks.batch_of(name, images)
        found = recording.recorded(networks.made(name), inputs, labels, passes)
        head = provenance()
        content = {"model": name, "input": list(inputs.shape), "passes": passes, "threads": 1,
                   "parameters": sum(row[1] for row in found["keys"]),
                   **{key: head[key] for key in ("machine", "date", "versions", "command")},
                   **found}
        path = folder / f"{name}.json"
        recording.write(path, content)
        click.echo(f"{name}: {content['parameters']:,} parameters, forward {found['forward_s']:.3f}"
                   f" s, backward {found['backward_s']:.3f} s; wrote {path}")


@click.command("replay", short_help="Exchange gradients at their recorded times.")
@click.option("--models", default=RECORDED, type=Names(), show_default=True,
              help="Recorded networks (resnet50, resnet110, alexnet, vgg11, vgg16, inception-bn, "
              "googlenet, densenet201, gpt), or files of `paceline train record`.")
@click.option("--ratio", default=1.0, show_default=True,
              type=click.FloatRange(0, min_open=True, clamp=False),
              help="Computing time of a step, as a multiple of the time of its gradients on the "
              "links.")
@click.option("--compute-s", default=0.0, type=click.FloatRange(0),
              help="Computing time of a step in seconds, in place of --ratio; needed without "
              "--lab.")
@click.option("--ways", type=Names(),
              help="Ways of exchange: funnel, concom, depcha or auto, each with :numbered or "
              ":ready (the order of pushes); ddp: or horovod: with paceline, gloo, mpi, "
              "mpi-nonblocking or mpi-parts, and over Open MPI mpi-ring or mpi-ring-parts. "
              "[default: all possible ones but horovod: and the rings]")
@click.option("--steps", default=5, show_default=True, type=Number(1, 1000),
              help="Number of steps in a row.")
@click.option("--images", default=32, show_default=True, type=Number(1, 10**6),
              help="Number of images of each rank in a step, for images/s.")
@click.option("--launches", default=1, show_default=True, type=Number(0, 1000),
              help="Number of launches of the ranks; 0 = only bounds and simulated times.")
@click.option("--ranks", "-n", default=0, type=Number(0, 4096),
              help="Number of ranks. [default: all places of the lab, or 2]")
@click.option("--slow", default="", metavar="RANKS:FACTOR",
              help="Let these ranks compute FACTOR times as long: 3:1.2, or 2,5:1.5.")
@click.option("--jitter", default=0.0, show_default=True,
              type=click.FloatRange(0, 100, clamp=False),
              help="Let each rank compute longer by up to this share of a step, drawn for each "
              "step, the same for all ways.")
@click.option("--machine",
              help="Machine model of the simulator. [default: that of the lab's links]")
@click.option("--lab", type=click.Path(exists=True), hidden=True)
@click.option("--mpi/--no-mpi", "with_mpi", default=False, show_default=True,
              help="Run in processes of the MPI that PACELINE_MPI names, and measure its calls, "
              "too.")
@file_option("--json", "path", help="Write each launch to this file as soon as it ends.")
@click.option("--append", is_flag=True, help="Add to the launches in the file of --json.")
def replay(models, ratio, compute_s, ways, steps, images, launches, ranks, slow, jitter, machine,
           lab, with_mpi, path, append):
    """Exchange gradients at their recorded times, step after step, without computing.

    Each layer waits only for its own weights, as with a dependency engine. The table compares each
    way with its time over perfect links, and with its simulated time.

    \b
    paceline train replay --compute-s 0.5 --ways funnel:numbered,auto:ready
    paceline train replay --compute-s 0.5 --ranks 4 --slow 3:1.2 --jitter 0.1
    paceline train replay --launches 0 --compute-s 1 \\
        --machine alpha_us=20,gbit_per_s=1
    """
    from paceline_bench.train import pace, replay as replays

    job = replays.Job(ranks, lab, with_mpi)
    paces = pace.parse(slow, jitter, job.ranks)
    ways = ways or [way for way in replays.WAYS if with_mpi or "mpi" not in way]
    replays.check_ways(ways, job.mpi)
    made = replays.steps_of(models, ratio, compute_s, job.bound_s)
    content = content_of(job, made, ways, steps, machine, paces)
    content["plan"] |= {"ratio": None if compute_s else ratio, "images": images}
    content = begun(path, content, append)
    return run(job, made, content, launches, path)


def content_of(job, made, ways, steps, machine, paces):
    """The head of a file: plan, bounds, and simulated times. Those are of the slowest rank,
    as all wait for it, and know of no jitter."""
    from paceline.provenance import provenance

    from paceline_bench.train import pace, replay as replays

    machine = machine or (job.cluster.machine + ",alpha_us=60,reduce_gbyte_per_s=4"
                          if job.cluster else "")
    nodes = job.cluster.nodes if job.cluster else job.ranks
    model = replays.Simulated(job.ranks, nodes, machine) if machine else None
    perfect_s = model.bound_s if model and not job.cluster else job.bound_s
    slowest = {name: pace.slowed(step, paces.slowest) for name, step in made.items()}
    return {
        **provenance(job.about), "plan": {
            "ranks": job.ranks, "steps_in_a_row": steps, "ways": list(ways), "machine": machine,
            "slow": paces.slow, "jitter": paces.jitter,
            "models": {name: asdict(step) for name, step in made.items()}},
        "bounds": {name: {way: replays.bounded(step, way, perfect_s, steps) for way in ways}
                   for name, step in slowest.items()},
        "simulated": {name: {way: model.seconds(step, way, steps) for way in ways} if model else {}
                      for name, step in slowest.items()},
        "summary": {}, "launches": []}


def begun(path, content, append):
    """The content of the file so far, or this one; refuses to add to another plan's."""
    content = json.loads(json.dumps(content))  # as it is in a file
    if append and path and path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        if before.get("plan") != content["plan"]:
            raise click.UsageError(f"{path.name} is of another plan; leave out --append.")
        return before
    return content


def run(job, made, content, launches, path):
    """Runs `launches` launches, each in the file as soon as it has ended; fails if one was refused.
    After a failure or an interrupt it shows what there is by then."""
    from paceline_bench.train import pace, replay as replays

    plan, begin = content["plan"], len(content["launches"])
    spec = {"models": plan["models"], "ways": plan["ways"], "warm_up": 2,
            "steps_in_a_row": plan["steps_in_a_row"], "slow": plan["slow"],
            "jitter": plan["jitter"]}
    slower = pace.Pace(tuple(plan["slow"])).slowest * (1 + plan["jitter"])
    least_s = (2 + plan["steps_in_a_row"]) * sum(
        slower * sum(bounds.values()) for bounds in content["bounds"].values())
    partly = []

    def keep(found, **more):
        if found:
            times, notes = replays.judged(found, made, job, plan["steps_in_a_row"])
            date = datetime.now().astimezone().isoformat(timespec="seconds")
            content["launches"].append({"date": date, "times": times, "notes": notes, **more})
        content["summary"] = replays.summary(content)
        if path:
            path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    try:
        for number in range(max(1, launches)):
            keep(job.launch(spec, least_s, partly) if number < launches else [])
    except (Error, KeyboardInterrupt) as error:
        done = len(content["launches"]) - begin
        why = "interrupted" if isinstance(error, KeyboardInterrupt) else "ended"
        if partly:
            keep(partly, ended_early=why)
        if done or partly:
            show(job, made, content, path)
        click.echo(f"paceline: train replay: {why} after {done} of {launches} launches.", err=True)
        raise
    return 1 if show(job, made, content, path) else 0


def show(job, made, content, path):
    """Prints the table, and returns what was refused."""
    from paceline_bench.train import pace, perfect, replay as replays

    plan, out = content["plan"], console()
    slowest = pace.Pace(tuple(plan["slow"])).slowest
    least = {name: perfect.least_s(pace.slowed(step, slowest), job.bound_s)
             for name, step in made.items()}
    out.print(replays.table(content["summary"], least, plan["images"] * plan["ranks"]))
    notes = list(dict.fromkeys(note for one in content["launches"] for note in one["notes"]))
    for note in notes:
        out.print(note, style="yellow", soft_wrap=True, markup=False)
    if path:
        out.print(f"Wrote {path}", soft_wrap=True)
    return notes
