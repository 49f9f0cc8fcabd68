"""The document's figures 2 to 4 and tables 1 and 2, drawn from a measured profile.

P. Alizadeh et al., EuroMPI 2022, section 4. A page calls these with the Calls of a folder of
profiles (profiling.calls.read) and their Summary (profiling.summary.summarise).
"""

from paceline.profiling import pictures
from paceline.profiling.summary import CLASSES

NAMES = {"all": "All message sizes", "small": "Small messages", "medium": "Medium messages",
         "large": "Large messages"}


def figures(found, collective="allreduce"):
    """[(name, title, SVG)] of figures 2, 3 and 4; without those that there is nothing for."""
    parts = [
        ("figure 2", "Collectives: shares of all calls and of the time in calls",
         pictures.shares(found)),
        ("figure 3", f"Sizes of {collective}: shares of its calls and of its time",
         pictures.sizes(found, collective)),
        ("figure 4", f"Worst and average imbalance factors of {collective}, call by call",
         pictures.invocations(found, collective)),
    ]
    return [part for part in parts if part[2]]


def tables(found, collective="allreduce"):
    """[(name, title, rows)] of tables 1 and 2; a row is (range, worst, average), factors averaged
    over calls. Table 2, of the ranks of one node, is there where a node has several."""
    rows = {row.sizes: row for row in found.rows if row.collective == collective}
    order = ["all", *(name for name, _ in CLASSES)]
    chosen = [rows[name] for name in order if name in rows]
    whole = [(NAMES[row.sizes], row.worst, row.average) for row in chosen]
    inside = [(NAMES[row.sizes], row.node_worst, row.node_average) for row in chosen
              if row.node_worst == row.node_worst]
    parts = [("table 1", f"Imbalance factors of {collective}, of all ranks", whole),
             ("table 2", f"Imbalance factors of {collective}, of the ranks of a node", inside)]
    return [part for part in parts if part[2]]
