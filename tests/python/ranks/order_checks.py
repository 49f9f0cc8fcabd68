"""Checks that each type of KVStore makes its calls as it says: what is under way together, what
goes one after the other, and what goes on meanwhile."""

import os
import random
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy
from support import checks_in, run_checks

import paceline
from paceline import kvstore
from paceline.engine import Engine
from paceline.kvstore.cores import Cores

KEYS = [f"k{i}" for i in range(6)]
LIMIT_S = 15


class Mark:
    """What one rank sets, and others wait for, without a call."""

    def __init__(self, name):
        self._path = Path(os.environ["PACELINE_STORE"]) / f"mark-{name}"

    def set(self):
        self._path.touch()

    @property
    def is_set(self):
        return self._path.exists()

    def wait(self):
        deadline = time.monotonic() + LIMIT_S
        while not self.is_set:
            assert time.monotonic() < deadline, f"{self._path.name} does not come"
            time.sleep(0.002)


def made(comm, kind, engine=None, **options):
    store = kvstore.create(kind, comm, engine=engine, **options)
    values = [numpy.full(50, comm.rank + 1.0) for _ in KEYS]
    store.init(KEYS, [numpy.zeros(50) for _ in KEYS])
    return store, values


def right(comm, values):
    for x in values:
        assert (x == sum(range(1, comm.size + 1))).all(), x


def spans(comm, step):
    """[(label, enter, leave)] of this rank's calls in step()."""
    folder = tempfile.mkdtemp() if comm.rank == 0 else ""
    name = numpy.zeros(200, "uint8")
    name[: len(folder)] = numpy.frombuffer(folder.encode(), "uint8")
    comm.broadcast(name)
    with paceline.profile(bytes(name).rstrip(b"\0").decode()) as recorded:
        step()
    return [(site, enter[comm.rank], leave[comm.rank])
            for group in recorded.calls().groups if len(group.members) == comm.size
            for site, enter, leave in zip(group.site, group.enter, group.leave, strict=True)
            if site.startswith(("key ", "bucket "))]


def most_at_once(found):
    """So many calls were under way at the same moment."""
    return max(sum(enter <= at < leave for _, enter, leave in found) for _, at, _ in found)


def with_late_peers(comm, name, push, then=lambda: None):
    """The other ranks push when rank 0 has; then() is what rank 0 does before."""
    mark = Mark(name)
    if comm.rank > 0:
        mark.wait()
    push()
    if comm.rank == 0:
        then()
        mark.set()


def check_concom_has_several_under_way_and_no_more(comm):
    """Rank 0 can push `outstanding` keys while no other rank has come, and not one more."""
    if comm.size == 1:
        return
    store, values = made(comm, "concom", communicators=2, outstanding=3)
    several, one_more = Mark("three are under way"), Mark("a fourth is under way")
    if comm.rank > 0:
        several.wait()
        time.sleep(0.1)
        assert not one_more.is_set, "a fourth is under way"
    for i, (key, value) in enumerate(zip(KEYS, values, strict=True)):
        store.push(key, value)
        if comm.rank == 0 and i in (2, 3):
            (several, one_more)[i - 2].set()
    store.pull(KEYS, values)
    store.wait()
    right(comm, values)
    store.close()


def check_calls_under_way_at_once(comm):
    """While the other ranks have not come rank 0 is alone with so many; depcha goes in order."""
    if comm.size == 1:
        return
    for kind, most, options in [("depcha", 1, {}), *(("auto", n, {"outstanding": n})
                                                     for n in (1, 2, 3))]:
        store, values = made(comm, kind, **options)

        def step(store=store, values=values, name=f"{kind} {most}"):
            with_late_peers(comm, name, lambda: store.push(KEYS, values), lambda: time.sleep(0.1))
            store.pull(KEYS, values)
            store.wait()

        found = spans(comm, step)
        right(comm, values)
        labels = [label for label, _, _ in found]
        assert sorted(labels) == [f"key {key!r}" for key in KEYS], labels
        if kind == "depcha":
            assert labels == sorted(labels), labels
        assert comm.rank > 0 or most_at_once(found) == most, (kind, most, found)
        store.close()


def check_funnel_returns_when_all_ranks_have_pushed(comm):
    if comm.size == 1:
        return
    store, values = made(comm, "funnel")
    returned = Mark("funnel has returned")
    if comm.rank > 0:
        time.sleep(0.1)
        assert not returned.is_set, "funnel does not wait for its call"
    store.push(KEYS[0], values[0])
    if comm.rank == 0:
        returned.set()
    store.pull(KEYS[0], values[0])
    store.wait()
    right(comm, values[:1])
    store.close()


def check_the_plan_of_auto_follows_keys(comm):
    """A key that is pushed twice first, or made later, is in a bucket from the next round on."""
    store, values = made(comm, "auto")
    store.push(KEYS[0], values[0])
    store.push(KEYS[0], values[0])   # begins another round, in which the plan knows one key
    store.wait()
    later = [f"later {i}" for i in range(3)]
    for keys in (KEYS, [*KEYS, *later]):
        if keys is not KEYS:
            store.init(later, [numpy.zeros(50) for _ in later])

        def step(keys=keys):
            values = [numpy.full(50, comm.rank + 1.0) for _ in keys]
            store.pushpull(keys, values)
            store.wait()
            right(comm, values)

        step()
        step()
        assert f"auto: {len(keys)} keys, " in store.plan, store.plan
        assert all(label.startswith("bucket ") for label, _, _ in spans(comm, step))
    store.close()


def check_ranks_may_push_in_different_orders_once_there_is_a_plan(comm):
    """The plan is by key: from the second step on every rank has an order of its own."""
    for cores in (None, Cores(1, comm.size)):
        with mock.patch.object(Cores, "of", lambda comm, cores=cores: cores):
            store, _ = made(comm, "auto")
            for step in range(6):
                keys = [*KEYS]
                if step > 0:
                    random.Random(10 * step + comm.rank).shuffle(keys)
                values = {key: numpy.full(50, step + KEYS.index(key) * (comm.rank + 1.0))
                          for key in keys}
                for key in keys:
                    store.push(key, values[key])
                store.pull(keys[::-1], [values[key] for key in keys[::-1]])
                store.wait()
                for i, key in enumerate(KEYS):
                    total = step * comm.size + i * sum(range(1, comm.size + 1))
                    assert (values[key] == total).all(), (step, key, values[key][0], total)
            store.close()


def check_copies_of_other_keys_go_on(comm):
    """A value that a task makes comes into its buffer, and another key goes back to the program,
    while an earlier call waits for the other ranks."""
    for kind in ("depcha", "auto"):
        with Engine(compute=1) as engine:
            store, values = made(comm, kind, engine)
            before = numpy.full(50, 7.0)

            def push(engine=engine, store=store, values=values):
                store.push(KEYS[0], values[0])
                engine.push(lambda: time.sleep(0.01), write=[values[1]])
                store.push(KEYS[1], values[1])

            def then(engine=engine, store=store, values=values, before=before):
                engine.wait(values[1])     # it may be written again
                engine.push(lambda: values[1].fill(-1), write=[values[1]]).wait()
                store.pull(KEYS[2], before)
                engine.wait(before)

            with_late_peers(comm, f"copies of {kind}", push, then)
            store.pull(KEYS[:2], values[:2])
            store.wait()
            right(comm, values[:2])
            assert comm.rank > 0 or (before == 0).all()
            store.close()


if __name__ == "__main__":
    import order_checks

    run_checks(checks_in(order_checks))
