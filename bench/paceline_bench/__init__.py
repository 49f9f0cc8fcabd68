"""The laboratory of Paceline: it measures collectives, trains networks, redraws what was published.

It adds its commands to `paceline`, by an entry point in the group paceline.commands.
"""

# As in paceline.cli: name -> (module, what the list of commands says).
COMMANDS = {
    "bench": ("paceline_bench.cli.bench", "Measure collectives, also against gloo and MPI."),
    "train": ("paceline_bench.cli.train", "Train a network on several ranks of this machine."),
    "report": ("paceline_bench.cli.report", "Draw what was published about collectives, again."),
}
