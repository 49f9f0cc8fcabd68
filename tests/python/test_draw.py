"""Pictures of traces: every event once, every rank named, nothing that breaks the document."""

import dataclasses
import enum
import types
import xml.etree.ElementTree as ElementTree

import pytest

from paceline import draw, picture, units
from paceline.trace import messages

SVG = "{http://www.w3.org/2000/svg}"


def ring_trace(ranks=3, segments=2):
    """One round of a ring with a combination, segment after segment; the last rank comes late."""
    events, step = [], 0
    for segment in range(segments):
        begin = 1e-5 + segment * 2e-5
        for rank in range(ranks):
            right, left = (rank + 1) % ranks, (rank - 1) % ranks
            more = {"segment": segment, "bytes": 4096}
            events += [
                draw.Event(rank, "send", right, step, begin_s=begin, end_s=begin + 1e-5, **more),
                draw.Event(rank, "recv", left, step + 1, begin_s=begin, end_s=begin + 1e-5, **more),
                draw.Event(rank, "reduce", -1, step + 2, begin_s=begin + 1e-5, end_s=begin + 2e-5,
                           **more),
            ]  # fmt: skip
        step += 3
    arrivals = [0.0] * (ranks - 1) + [1e-5]
    exits = [max(e.end_s for e in events)] * ranks
    title = "ring <3 ranks> & \"more\""
    return draw.Trace(title, "simulated: a < b", ranks, arrivals, exits, events)


def parts(svg, tag, name):
    return [e for e in ElementTree.fromstring(svg).iter(SVG + tag) if e.get("class") == name]


def faults(trace, svg):
    """What a picture lacks, compared with its trace."""
    found = []
    if len(parts(svg, "rect", "event")) != len(trace.events):
        found.append("events")
    if len(parts(svg, "line", "message")) != len(messages(trace)):
        found.append("messages")
    if len(parts(svg, "line", "exit")) != trace.ranks:
        found.append("exits")
    texts = [e.text for e in ElementTree.fromstring(svg).iter(SVG + "text")]
    found += [f"rank {r}" for r in range(trace.ranks) if f"rank {r}" not in texts]
    found += [text for text in (trace.title, trace.provenance) if text not in texts]
    tips = [box.find(SVG + "title").text for box in parts(svg, "rect", "event")]
    if len(set(tips)) != len(tips):
        found.append("an event twice")
    return found


def test_everything_is_in_the_picture_once():
    trace = ring_trace()
    assert faults(trace, draw.to_svg(trace)) == []


def test_mutants_are_noticed():
    trace = ring_trace()
    lost = dataclasses.replace(trace, events=trace.events[:-1])
    twice = dataclasses.replace(trace, events=[*trace.events[:-1], trace.events[-2]])
    nameless = dataclasses.replace(trace, title="", provenance="")
    no_send = dataclasses.replace(trace, events=trace.events[1:])
    assert faults(trace, draw.to_svg(lost)) == ["events"]
    assert "an event twice" in faults(trace, draw.to_svg(twice))
    assert faults(trace, draw.to_svg(nameless)) == [trace.title, trace.provenance]
    assert faults(trace, draw.to_svg(no_send)) == ["events", "messages"]


def test_messages_lead_from_sender_to_receiver():
    pairs = messages(ring_trace(4, 3))
    assert len(pairs) == 12
    for send, recv in pairs:
        assert (send.rank, send.peer, send.segment) == (recv.peer, recv.rank, recv.segment)


@pytest.mark.parametrize("last, label", [
    (0, "signal"), (1, "message or signal"), (2, "message")])
def test_the_legend_tells_messages_from_signals(last, label):
    names = {"send": "signal", "recv": "wait"}
    trace = ring_trace()
    for event in trace.events:
        if event.segment >= last:
            event.activity = names.get(event.activity, event.activity)
    texts = [e.text for e in ElementTree.fromstring(draw.to_svg(trace)).iter(SVG + "text")]
    arrow = texts[texts.index("arrival") - 1]
    assert arrow == label


def test_boxes_lie_where_time_and_rank_say():
    trace = ring_trace()
    boxes = {}
    for box in parts(draw.to_svg(trace, 1200), "rect", "event"):
        boxes[box.find(SVG + "title").text] = {k: float(box.get(k)) for k in ("x", "y", "width")}
    first, second = (next(b for t, b in boxes.items() if t.startswith(f"rank {r}: send"))
                     for r in (0, 1))  # fmt: skip
    assert first["x"] == second["x"] and first["y"] < second["y"]
    room = 1200 - picture.Picture.LEFT - picture.Picture.RIGHT
    assert first["width"] == pytest.approx(room / 5, abs=0.1)
    assert first["x"] == pytest.approx(picture.Picture.LEFT + room / 5, abs=0.1)


def test_segments_have_shades_and_activities_colours():
    assert len({picture.colour("send", s, 4) for s in range(4)}) == 4
    assert len({picture.colour(a) for a in ("send", "recv", "reduce", "copy", "wait")}) == 5


def test_overlapping_events_of_a_measurement_do_not_hide_each_other():
    posted = [draw.Event(0, "recv", 1, i, begin_s=0, end_s=1 + i) for i in range(3)]
    assert [level for _, level in picture.stacked(posted)] == [0, 1, 2]
    one_by_one = [draw.Event(0, "recv", 1, i, begin_s=i, end_s=1 + i) for i in range(3)]
    assert [level for _, level in picture.stacked(one_by_one)] == [0, 0, 0]


@pytest.mark.parametrize(
    "span, unit", [(2.0, "s"), (1.0, "s"), (0.02, "ms"), (3e-6, "µs"), (4e-8, "ns"), (0, "ns")]
)
def test_the_axis_has_a_unit_and_round_ticks(span, unit):
    assert units.unit_of(span)[0] == unit
    found = units.ticks(span, 8)
    assert found[0] == 0 and found[-1] <= span * (1 + 1e-9) and len(found) <= 9
    if span:
        assert len(found) >= 3


def test_json_there_and_back():
    trace = ring_trace()
    assert draw.from_json(draw.to_json(trace)) == trace


def test_from_core_reads_attributes_and_enums():
    trace = ring_trace()
    kinds = enum.Enum("Activity", ["send", "recv", "reduce"])
    events = [types.SimpleNamespace(**{**vars(e), "activity": kinds[e.activity]})
              for e in trace.events]  # fmt: skip
    assert draw.from_core(types.SimpleNamespace(**{**vars(trace), "events": events})) == trace


def test_what_cannot_be_drawn_is_refused():
    for wrong in (
        draw.Trace(ranks=1),
        draw.Trace(ranks=1, arrival_s=[0], exit_s=[1], events=[draw.Event(1, "send")]),
        draw.Trace(ranks=1, arrival_s=[0], exit_s=[1], events=[draw.Event(0, "fly")]),
        draw.Trace(ranks=1, arrival_s=[0], exit_s=[1], events=[draw.Event(0, "send", begin_s=1)]),
    ):
        with pytest.raises(ValueError, match="trace"):
            draw.to_svg(wrong)
        with pytest.raises(ValueError, match="trace"):
            draw.to_terminal(wrong)


def test_nothing_happened():
    for trace in (draw.Trace(), draw.Trace(ranks=1, arrival_s=[2.0], exit_s=[2.0])):
        ElementTree.fromstring(draw.to_svg(trace))
        assert draw.to_terminal(trace).plain


def test_terminal_shows_every_rank_and_who_is_late():
    trace = ring_trace()
    lines = draw.to_terminal(trace, 59).plain.splitlines()
    assert lines[0].startswith(trace.title)
    cells = {line[:9].strip(): line[9:] for line in lines if line.startswith("rank")}
    assert list(cells) == ["rank 0", "rank 1", "rank 2"]
    assert cells["rank 2"].startswith("░" * 10) and "░" not in cells["rank 1"]
    assert cells["rank 0"] == " " * 10 + "▀" * 10 + "▄" * 10 + "▀" * 10 + "▄" * 10
    assert all(len(line) <= 59 for line in lines[1:-2])
    assert "segments 0 to 1" in lines[-2] and lines[-1].strip() == trace.provenance


def test_terminal_has_the_colours_of_the_svg():
    trace = ring_trace()
    styles = {str(span.style) for span in draw.to_terminal(trace, 59).spans}
    for segment in (0, 1):
        assert picture.colour("send", segment, 2) in styles


def test_many_ranks_take_one_line_each():
    lines = draw.to_terminal(ring_trace(20), 80).plain.splitlines()
    assert sum(line.startswith("rank") for line in lines) == 20
    assert len(lines) == 1 + 20 + 4
