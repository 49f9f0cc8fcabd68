"""The laboratory of Paceline: measures collectives, trains networks, reproduces publications.

It adds its commands to `paceline` through an entry point in the group paceline.commands.
"""

# As in paceline.cli: name -> (module, what the list of commands says).
COMMANDS = {
    "bench": ("paceline_bench.cli.bench", "Measure collectives, also against gloo and MPI."),
    "train": ("paceline_bench.cli.train", "Train a network on several ranks of this machine."),
    "report": ("paceline_bench.cli.report", "Reproduce published figures about collectives."),
}
