"""paceline.kvstore: the store alone here; on several ranks tests/python/ranks/kvstore_checks.py."""

import launched
import numpy
import pytest
from length import each

import paceline
from paceline import kvstore


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
    refused(lambda: store.push("v", a), "push: key 'v' is not known", "2 are: 'w', 7")
    refused(lambda: store.pull(["w", "v"], [a, a]), "pull: key 'v' is not known")
    refused(lambda: store.wait("v"), "wait: key 'v'")
    refused(lambda: store.push("w", a.reshape(2, 2)), "key 'w' has shape (4,)", "(2, 2)")
    refused(lambda: store.push("w", a.astype("int64")), "type float32", "int64")
    refused(lambda: store.push(["w", 7], [a]), "2 keys with 1 values")
    refused(lambda: store.push(["w", 7], a), "no list of values")
    refused(lambda: store.push(1.5, a), "keys are a float")
    refused(lambda: store.init("w", a), "key 'w' exists already")
    refused(lambda: store.init(["x", "x"], [a, a]), "a key is there twice")
    refused(lambda: store.init([2.5], [a]), "key 2.5 is a float")
    refused(lambda: store.init("y", []), "key 'y' has no value")
    refused(lambda: kvstore.create("dist_sync"), "there is no type 'dist_sync'", "funnel")
    refused(lambda: kvstore.create("concom", communicators=0), "communicators is 0")
    refused(lambda: kvstore.create("funnel", outstanding=2), "outstanding")


@pytest.mark.parametrize("name", [*launched.names("kvstore_checks"), "end"])
@each("ranks", [3], [1, 2, 5])
def test_on_ranks(name, ranks):
    launched.expect("kvstore_checks", name, ranks, ("WITH_TORCH", "1"))
