"""Cells of the device page."""

from paceline_bench.measure import devices, stages
from paceline_bench.report.dag_linear import formula_s, speed_up
from paceline_bench.report.device import COUNTS, FEW, NAMES, took
from paceline_bench.report.verdicts import Cell

TABLED = 16 << 20
KINDS = {NAMES[way]: way for way in ("LP", "MST", "BE")}
COMPARED = ((4, 2), (6, 5))  # numbers of devices of figure 4


def of_table():
    """Table 1: emulated times by the formulas."""
    return [Cell("emulated", f"{way} on {count}", took(collective, way, count, TABLED)
                 / formula_s(way, collective, count, TABLED), group=collective)
            for collective in devices.WAYS for way in ("LP", "MST", "BE") for count in COUNTS]


def of_theorem(figure, way):
    """Theorem 3.1: times by LP's, by the document's formula."""
    return [Cell("emulated", f"on {point.ranks}",
                 point.seconds / speed_up(way, point.ranks, point.bytes), group=panel.collective)
            for panel in figure.panels for line in panel.lines
            if line.label.startswith(NAMES[way]) for point in line.points]


def over_sizes(figure, collective, way):
    """Figure 3: the mean over sizes of LP's speed by another's, calls by calls."""
    panels = {}
    for panel in figure.panels:
        if panel.collective == collective and f", {FEW} " in panel.title:
            lines = panels.setdefault((panel.lines[0].kind, panel.title.partition(", part ")[0]),
                                      {})
            lines |= {KINDS.get(line.label, line.label): line.points for line in panel.lines
                      if line.kind != "simulated"}
    for (kind, title), lines in panels.items():
        if "LP" in lines and way in lines:
            rival = {point.bytes: point.seconds for point in lines[way]}
            speeds = [rival[point.bytes] / point.seconds for point in lines["LP"]
                      if point.bytes in rival]
            yield Cell(kind, title.partition(", ")[2], sum(speeds) / len(speeds))


def over_devices(figure):
    """Figure 4: the time of LP on more devices by that on fewer."""
    for panel in figure.of("emulated"):
        times = {point.ranks: point.seconds for point in panel.lines[0].points}
        for more, fewer in COMPARED:
            if more in times:
                yield Cell("emulated", f"{more} by {fewer}", times[more] / times[fewer],
                           group=panel.collective)


def of_stages(figure):
    """Shares of the stages, of all together."""
    for row in figure.table[1:]:
        named = dict(zip(figure.table[0], row, strict=True))
        share = sum(int(named[name].removesuffix(" %")) for name in stages.STAGES) / 100
        yield Cell("measured", f"{named['collective']} of {named['message']}, {named['ranks']} "
                   f"ranks, {named['devices']} devices", share)


def cells(figures):
    """{claim: its Cells}."""
    named = {figure.name: figure for figure in figures}
    return {
        "table 1": of_table(),
        **{f"theorem 3.1: {way}": of_theorem(named["theorem 3.1"], way) for way in ("MST", "BE")},
        **{f"figure 3: {collective}, {way}":
           list(over_sizes(named["figure 3"], collective, way))
           for collective in devices.WAYS for way in ("MST", "BE")},
        "figure 4": list(over_devices(named["figure 4"])),
        "stages": list(of_stages(named["stages"]))}
