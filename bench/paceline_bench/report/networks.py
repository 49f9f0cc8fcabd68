"""The networks of the publications, as models of a machine.

What was published is the rate of the links. Start-up is that of usual implementations of MPI over
them. The rate of combining is set so that it takes a third of the time of a ring that is not cut:
28 to 37 % were published.
"""

from paceline_bench.report.lines import Model

EDR = Model("EDR, 100 Gbit/s", "alpha_us=1.5,gbit_per_s=100,reduce_gbyte_per_s=12.5")
EDR_ALONE = Model("EDR, no arithmetic", "alpha_us=1.5,gbit_per_s=100,reduce_gbyte_per_s=0")
# 40 Gbit/s, of which the encoding leaves four fifths.
QDR = Model("QDR, 32 Gbit/s", "alpha_us=2,gbit_per_s=32,reduce_gbyte_per_s=4")
# Eight nodes have one port of 100 Gbit/s to all others: a harsher taper than a real dragonfly's,
# and the one that this simulator knows.
DRAGONFLY = Model(
    "EDR in groups of 8",
    "inside_alpha_us=1.5,inside_gbit_per_s=100,alpha_us=2.5,gbit_per_s=100,ranks_per_node=8,"
    "reduce_gbyte_per_s=12.5")
# The published implementation used one of two links per process; rates are those of one.
FDR = Model("FDR, 54.5 Gbit/s", "alpha_us=1.5,gbit_per_s=54.5,reduce_gbyte_per_s=10")
