"""Training steps with one slow rank, simulated: what naming it late saves, over ranks.

    .venv/bin/python bench/lab/slow_step.py --slow 1.5 --ranks 8,64,256

One rank of each node computes as long as the links need for its gradients, the last rank --slow
times as long. DDP's buckets are exchanged one after the other as they become ready. Prints the
seconds of a step by the usual algorithm and by the form for late ranks, for buckets to which the
slow rank comes late by 0.3 of the message's time or more; and the same for the part of the step
after that rank's last gradient.
"""

import click

from paceline import _core
from paceline.kvstore import records
from paceline.schedules import how, unit_count
from paceline_bench.train import pace, perfect

ELEMENT, APART = perfect.ELEMENT_BYTES, 0.3


class Exchange:
    """Allreduces between nodes whose last rank may be named late."""

    def __init__(self, ranks, machine):
        self.ranks, self.machine, self.worlds = ranks, machine, {}

    def exits(self, nbytes, entered, names):
        """Times at which ranks leave a call."""
        late = [self.ranks - 1] if names else []
        key = nbytes, names
        if key not in self.worlds:
            choice = _core.choose("allreduce", self.ranks, nbytes, machine=self.machine, late=late)
            self.worlds[key] = _core.World("allreduce", choice["algorithm"], self.ranks,
                                           fused=True, late=late, **how(choice))
        count = unit_count("allreduce", self.ranks, nbytes)
        return list(self.worlds[key].simulate(count, ELEMENT, self.machine, list(entered)).exit_s)

    def step_s(self, steps, names):
        """Seconds of a step of ranks that compute `steps`, and those after the last gradient."""
        left = [0.0] * self.ranks
        for keys in perfect.buckets(steps[0]):
            nbytes = sum(steps[0].bytes[key] for key in keys)
            entered = [max(before, step.forward_s + max(step.ready_s[key] for key in keys))
                       for step, before in zip(steps, left, strict=True)]
            apart_s = entered[-1] - max(entered[:-1])
            message_s = _core.bound_s("broadcast", 2, nbytes, self.machine)
            left = self.exits(nbytes, entered, names and apart_s >= APART * message_s)
        return max(left), max(left) - steps[-1].compute_s


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--model", default="resnet50", show_default=True)
@click.option("--slow", default=1.5, show_default=True, help="Factor of its computing time.")
@click.option("--ranks", default="8,64,256", show_default=True)
@click.option("--machine", default="alpha_us=60,gbit_per_s=0.2", show_default=True)
def main(model, slow, ranks, machine):
    """Print a row for each number of ranks."""
    record = records.read(model)
    nbytes = sum(ELEMENT * row[1] for row in record["keys"])
    for p in map(int, ranks.split(",")):
        exchange = Exchange(p, machine)
        step = perfect.step_of(record, _core.bound_s("allreduce", p, nbytes, machine))
        steps = [step] * (p - 1) + [pace.slowed(step, slow)]
        (usual, usual_left), (named, named_left) = (exchange.step_s(steps, names)
                                                    for names in (False, True))
        click.echo(f"{p} ranks: {usual:.2f} s, named {named:.2f} s; after the last gradient "
                   f"{usual_left:.2f}, {named_left:.2f}")


if __name__ == "__main__":
    main()
