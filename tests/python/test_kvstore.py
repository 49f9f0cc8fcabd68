"""paceline.kvstore: the store alone here; on several ranks tests/python/ranks/kvstore_checks.py."""

import itertools
import threading

import launched
import numpy
import pytest
from length import each

import paceline
from paceline import _core, kvstore
from paceline.engine import Engine
from paceline.kvstore.auto import _is_against
from paceline.kvstore.cores import Cores
from paceline.kvstore.described import COLUMNS, FEW, describe
from paceline.kvstore.plan import Plan, order_of_calls
from paceline.kvstore.prices import LEAST_BYTES, MOST_BYTES, SIZES, Prices

pytestmark = pytest.mark.ranks


@pytest.fixture(params=sorted(kvstore.TYPES))
def store(request, tmp_path):
    alone = paceline.init(0, 1, str(tmp_path))
    one = kvstore.create(request.param, alone)
    yield one
    one.close()
    paceline.finalize()


def test_alone(store):
    a, out = numpy.arange(6.0).reshape(2, 3), numpy.zeros((2, 3))
    store.init("w", a)
    store.pull("w", out)
    store.wait("w")
    assert (out == a).all()
    store.push("w", [a, 2 * a, a])  # of three local devices
    store.pull("w", [out])
    store.wait()
    assert (out == 4 * a).all()
    assert (store.rank, store.num_workers) == (0, 1) and store.type in kvstore.TYPES


def refused(action, *words):
    with pytest.raises(paceline.UsageError) as caught:
        action()
    for word in words:
        assert word in str(caught.value), caught.value


def test_bad_input_is_refused(store):
    a = numpy.zeros(4, "float32")
    store.init(["w", 7], [a, a.copy()])
    refused(lambda: store.push("v", a), "push: key 'v' is not known", "There are 2: 'w', 7")
    refused(lambda: store.pull(["w", "v"], [a, a]), "pull: key 'v' is not known")
    refused(lambda: store.wait("v"), "wait: key 'v'")
    refused(lambda: store.push("w", a.reshape(2, 2)), "key 'w' has shape (4,)", "(2, 2)")
    refused(lambda: store.push("w", a.astype("int64")), "type float32", "int64")
    refused(lambda: store.push(["w", 7], [a]), "2 keys with 1 values")
    refused(lambda: store.push(["w", 7], a), "no list of values")
    refused(lambda: store.push(1.5, a), "keys are a float")
    refused(lambda: store.wait(7.5), "wait: keys are a float")
    for call in (store.push, store.pull):
        refused(lambda call=call: call("w", None), "key 'w' has no value but [None]")
        refused(lambda call=call: call(["w", 7], [a, None]), "key 7 has no value but [None]")
        refused(lambda call=call: call("w", []), "key 'w' has no value but None")
    refused(lambda: store.init("w", a), "key 'w' exists already")
    refused(lambda: store.init(["x", "x"], [a, a]), "a key occurs twice")
    refused(lambda: store.init([2.5], [a]), "key 2.5 is a float")
    refused(lambda: store.init("y", []), "key 'y' has no value")
    refused(lambda: kvstore.create("dist_sync"), "there is no type 'dist_sync'", "funnel")
    refused(lambda: kvstore.create("concom", communicators=0), "communicators is 0")
    refused(lambda: kvstore.create("funnel", outstanding=2), "outstanding")


def test_what_is_refused_of_one_key_changes_no_other(store):
    a, out = numpy.ones(4), numpy.zeros(4)
    strided, fixed = numpy.ones(8)[::2], numpy.ones(4)
    fixed.flags.writeable = False
    store.init(["w", "v"], [a, a.copy()])
    refused(lambda: store.push(["w", "v"], [5 * a, strided]), "key 'v'", "not contiguous")
    refused(lambda: store.pull(["w", "v"], [out, strided]), "key 'v'", "not contiguous")
    refused(lambda: store.pull(["w", "v"], [out, fixed]), "key 'v'", "read-only")
    refused(lambda: store.init(["x", "y"], [a, strided]), "key 'y'", "not contiguous")
    store.wait()
    assert (out == 0).all()
    store.init("x", a)
    store.pull("w", out)
    store.push("v", fixed)
    store.wait()
    assert (out == 1).all()


def test_values_of_a_key_that_is_there_twice_are_summed(store):
    a = numpy.arange(4.0)
    outs = [numpy.zeros(4) for _ in range(3)]
    store.init(["w", "v"], [a.copy(), a.copy()])
    store.pushpull(["w", "v", "w"], [a, 10 * a, [2 * a, 3 * a]], outs)
    store.wait()
    assert [out.tolist() for out in outs] == [(n * a).tolist() for n in (6, 10, 6)]


def test_a_push_waits_for_no_tasks_of_others(tmp_path):
    alone = paceline.init(0, 1, str(tmp_path))
    gate, a, out = threading.Event(), numpy.ones(4), numpy.zeros(4)
    with Engine(compute=2) as engine:
        blocked = engine.push(lambda: gate.wait(60))
        other = engine.push(lambda: 1 / 0, name="of somebody else")
        for kind in kvstore.TYPES:
            store = kvstore.create(kind, alone, engine=engine)
            store.init("w", a)
            store.pushpull("w", a, out)
            store.push("w", a)
            store.wait()
        is_open = not blocked.done
        gate.set()
        with pytest.raises(ZeroDivisionError):
            engine.wait()
    assert is_open and other.done
    paceline.finalize()


@pytest.mark.parametrize("name", [*launched.names("kvstore_checks"), "end"])
@each("ranks", [3], [1, 2, 5])
def test_on_ranks(name, ranks):
    launched.expect("kvstore_checks", name, ranks, ("WITH_TORCH", "1"))


@pytest.mark.parametrize("name", [*launched.names("order_checks"), "end"])
@each("ranks", [2], [3, 4])
def test_the_order_of_calls(name, ranks):
    launched.expect("order_checks", name, ranks)


# --- the plan of auto -----------------------------------------------------------------------------


class Key:
    def __init__(self, number, nbytes, dtype="float32"):
        self.number, self.key, self.nbytes, self.dtype = number, f"k{number}", nbytes, dtype


def lengths(plan):
    return [[entry.number for entry in bucket] for bucket in plan.buckets]


def linear(call_s, byte_s):
    """Prices where every call costs so much besides its bytes."""
    return Prices(tuple(call_s + size * byte_s for size in SIZES))


def test_buckets_hold_every_key_once_in_order_of_readiness():
    keys = [Key(i, 300_000 + i) for i in range(40)]
    prices = linear(50e-6, 1e-9)  # buckets of 1 MB
    assert prices.bucket_bytes() == 1_000_000
    forwards, backwards = (Plan.make(keys, against, prices) for against in (False, True))
    assert sum(lengths(forwards), []) == list(range(40))
    assert sum(lengths(backwards), []) == list(range(39, -1, -1))
    sizes = [sum(entry.nbytes for entry in bucket) for bucket in backwards.buckets]
    assert max(sizes) <= 1_000_000 and sizes[1] > 800_000  # the first has what is left
    assert sizes[-1] < 400_000  # what nothing hides is short
    assert lengths(Plan.make([Key(0, 1 << 30)], False, prices)) == [[0]]


def test_a_call_costs_what_the_choice_expects_and_what_the_engine_adds():
    near = "inside_alpha_us=2,inside_gbit_per_s=8,reduce_gbyte_per_s=1,copy_gbyte_per_s=1"
    alone = Prices.of(f"{near},task_us=0", 4, 1)
    for size, seconds in zip(SIZES, alone.seconds, strict=True):
        choice = _core.choose("allreduce", 4, size, machine=f"{near},ranks_per_node=4")
        assert seconds == choice["expected_s"] > 2e-6
    assert Prices.of(f"{near},task_us=30", 4, 1).call_s == pytest.approx(alone.call_s + 30e-6)
    assert Prices.of(near, 4, 1).call_s > alone.call_s, "unmeasured: as usual"
    assert alone.byte_s == pytest.approx(2.5e-9, rel=0.02), "two_shot sums 3/4 and copies 7/4"
    assert Prices.of("edr-100g", 2, 2).byte_s == pytest.approx(8e-11, rel=0.1), "a name will do"
    assert Prices.of("alpha_us=20,reduce_gbyte_per_s=0", 2, 2).bucket_bytes() == MOST_BYTES, \
        "there is no rate"


def test_prices_lie_on_lines_between_those_that_are_known():
    prices = Prices(tuple(float(min(size, 1 << 20)) for size in SIZES))
    assert prices.cost_s(100) == 100 and prices.cost_s(3 << 18) == 3 << 18
    assert prices.cost_s(3 << 20) == prices.cost_s(1 << 30) == 1 << 20
    steep = Prices(tuple(float(size) ** 2 for size in SIZES))
    assert steep.bucket_bytes() == LEAST_BYTES, "nothing is saved by a longer one"
    for call_s in (1e-5, 7e-5, 3e-4):
        assert linear(call_s, 1e-9).bucket_bytes() == pytest.approx(call_s / 0.05e-9)
    assert linear(1.0, 1e-9).bucket_bytes() == MOST_BYTES


@pytest.mark.parametrize("ready_s, cost_s, order", [
    ([1.0, 2.0, 3.0], [0.5, 0.5, 0.5], [0, 1, 2]),   # each is through before the next one comes
    ([1.0, 2.0, 3.0], [2.5, 2.0, 1.0], [0, 2, 1]),   # what is needed first passes the second
    ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [2, 1, 0]),   # all at once: as they are needed
    ([3.0, 2.0, 1.0], [1.0, 1.0, 1.0], [2, 1, 0]),
])  # fmt: skip
def test_what_is_needed_first_passes_what_waits(ready_s, cost_s, order):
    assert order_of_calls(ready_s, [2, 1, 0], cost_s) == order


def test_the_order_of_a_plan_has_every_bucket_once():
    prices = linear(50e-6, 1e-9)
    plan = Plan.make([Key(i, 300_000) for i in range(40)], True, prices)
    ready_s = {i: 1e-4 * (40 - i) for i in range(40)}
    order = plan.order(ready_s, prices)
    assert sorted(order) == list(range(len(plan.buckets))) and order != sorted(order)
    passed = sum(b < a for a, b in itertools.pairwise(order))
    text = described(plan, prices, ready_s)
    assert f"order of calls; {passed} times a call lets others pass" in text


def test_long_keys_go_in_pieces_that_others_pass():
    prices = linear(50e-6, 1e-9)  # buckets of 1 MB
    plan = Plan.make([Key(1, 40_000_000), Key(0, 100_000)], False, prices)
    assert sum(nbytes for bucket, nbytes in plan.pieces if bucket == 0) == 40_000_000
    order = plan.order({1: 0.0, 0: 0.01}, prices)
    assert order.count(0) == 10 and order.count(1) == 1
    assert 2 <= order.index(1) <= 4, "as soon as it is there, in the middle of the long one"


def test_types_neither_share_a_bucket_nor_cut_those_of_others():
    keys = [Key(i, 8, "float32" if i % 2 else "bfloat16") for i in range(6)]
    plan = Plan.make(keys, False, linear(1e-3, 1e-12))
    assert lengths(plan) == [[0, 2, 4], [1, 3, 5]]


def described(plan, prices, ready_s, **options):
    """In lines that fit a terminal; here as one."""
    text = describe(plan, prices, ready_s, plan.order(ready_s, prices), 4, **options)
    assert max(map(len, ("paceline: " + text).splitlines())) <= COLUMNS, text
    return launched.flat(text)


def test_plan_says_what_it_does():
    prices = linear(1e-3, 1e-8)
    plan = Plan.make([Key(i, 1 << 20) for i in range(9)], True, prices)
    text = described(plan, prices, {i: 0.5 - 0.05 * i for i in range(9)})
    assert "auto: 9 keys, 9 MiB, in 9 buckets of up to 1.9 MiB, called in 9 calls, up to 4" in text
    assert "keys: those pushed last come first" in text
    assert "a call takes 1 ms, plus the time of its bytes at 95.4 MiB/s" in text
    assert "1 1 MiB 0 us 11.5 ms 'k8'" in text, "the first call, and when it is over"
    assert "9 1 MiB 400 ms 411 ms 'k0'" in text


def test_plan_lists_few_calls_unless_all_are_asked_for():
    prices = linear(1e-6, 1e-9)
    keys = [Key(i, 70_000) for i in range(100)]
    plan, ready_s = Plan.make(keys, False, prices), dict.fromkeys(range(100), 0.0)
    few, all_of_them = (described(plan, prices, ready_s, every_call=every)
                        for every in (False, True))
    assert f"... {100 - FEW} more" in few and "'k50'" not in few
    assert all(f"'k{i}'" in all_of_them for i in range(100))


def test_plan_names_as_many_keys_as_there_is_room_for():
    prices = linear(1e-3, 1e-9)
    keys = [Key(i, 8) for i in range(30)]
    keys[0].key = "a" * 90
    text = described(Plan.make(keys[1:], False, prices), prices, dict.fromkeys(range(30), 0.0))
    assert "'k1', 'k2', 'k3', 'k4' and 25 more" in text
    text = described(Plan.make(keys, False, prices), prices, dict.fromkeys(range(30), 0.0))
    assert text.endswith("30 keys")
    text = described(Plan.make(keys[:1], False, prices), prices, {0: 0.0})
    assert text.endswith(" '" + "a" * 35)


def test_plan_predicts_what_its_alternatives_take():
    prices = linear(call_s=1e-3, byte_s=1e-8)   # a key of 100 KB: 2 ms
    keys = [Key(i, 100_000) for i in range(20)]
    plan = Plan.make(keys, True, prices)
    ready_s = {i: 50.0 + (19 - i) * 0.5e-3 for i in range(20)}   # the last layer's first
    found = plan.predicted(plan.order(ready_s, prices), ready_s, prices)
    assert [one.calls for one in found.values()] == [len(plan.buckets), 20, 2, 1]
    over_s = {way: one.over_s for way, one in found.items()}
    assert over_s["one call"] == pytest.approx(9.5e-3 + 1e-3 + 20e-3)
    assert over_s["depcha"] == pytest.approx(9.5e-3 + 20 * 2e-3), "the first pushed is ready last"
    # Eleven keys reach DDP's first MiB; the rest is less than its second bucket.
    assert over_s["DDP's buckets"] == pytest.approx(5e-3 + 12e-3 + 10e-3)
    assert 20e-3 < over_s["this plan"] < over_s["depcha"]
    begins_s = {way: one.begins_s for way, one in found.items()}
    assert begins_s["depcha"] == pytest.approx(11.5e-3), "when the first layer's key is there"
    assert begins_s["DDP's buckets"] == over_s["DDP's buckets"], "which waits for all"
    assert 9.5e-3 < begins_s["this plan"] < over_s["this plan"]
    text = described(plan, prices, ready_s)
    assert "the last after 9.5 ms" in text and "depcha 20 calls 11.5 ms 49.5 ms" in text


def test_keys_without_bytes_have_a_plan():
    prices = linear(1e-3, 1e-9)
    plan = Plan.make([Key(i, 0) for i in range(3)], True, prices)
    assert lengths(plan) == [[2, 1, 0]]
    assert "auto: 3 keys, 0 B, in 1 bucket" in described(plan, prices, dict.fromkeys(range(3), 1.0))


def test_where_ranks_fill_their_cores_there_is_one_call():
    """Fewer calls cost less, and nothing hides them."""
    prices = linear(call_s=1e-3, byte_s=1e-8)
    keys = [Key(i, 400_000, "float64" if i == 3 else "float32") for i in range(20)]
    ready_s = {i: i * 0.5e-3 for i in range(20)}
    few, full = (Plan.make(keys, False, prices, Cores(count, threads=4)) for count in (5, 4))
    assert few.buckets == Plan.make(keys, False, prices).buckets and len(few.buckets) > 4
    assert lengths(full) == [[i for i in range(20) if i != 3], [3]], "each type has its own"
    assert len(full.pieces) == 2, "and is not cut"
    order = full.order(ready_s, prices)
    assert order == [1, 0], "the one that is ready first"
    text = described(full, prices, ready_s)
    assert "auto: 20 keys, 7.6 MiB, in 2 calls a step, one for each type" in text
    assert ("computing hides nothing, since 4 threads of the ranks compute on the 4 cores of their "
            "node") in text
    found = {way: one.over_s for way, one in full.predicted(order, ready_s, prices).items()}
    assert found["this plan"] == pytest.approx(9.5e-3 + 2 * 1e-3 + 80e-3)
    assert found["depcha"] == pytest.approx(9.5e-3 + 20 * 5e-3), "what calls take comes on top"
    assert found["depcha"] > found["DDP's buckets"] > 0.9999 * found["one a type"]
    assert found["one a type"] == found["this plan"]
    one = Plan.make(keys[:2], False, prices, Cores(1, 2))
    assert "in 1 call a step" in described(one, prices, ready_s)


def test_a_little_noise_does_not_change_the_order():
    assert not _is_against([1.0, 1.1, 1.05, 1.2, 1.15, 1.3])
    assert _is_against([2.0, 1.9, 1.95, 1.8, 1.5, 1.55, 1.0])
    assert not _is_against([1.0]) and not _is_against([1.0, 1.0, 1.0, 1.0])
