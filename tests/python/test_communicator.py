"""Collectives through paceline.Communicator, on 1, 2, 3, 5 and 8 ranks of one machine."""

import os

import launched
import pytest

TORCH = ("WITH_TORCH", "1")
LONG = bool(os.environ.get("PACELINE_LONG"))


@pytest.mark.parametrize("name", [*launched.names("collective_checks"), "end"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8] if LONG else [1, 3, 8])
def test_collectives(name, ranks):
    settings = [TORCH] if ranks in (2, 3) else []
    launched.expect("collective_checks", name, ranks, *settings)


@pytest.mark.parametrize("name", [*launched.names("request_checks"), "end"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5] if LONG else [1, 3])
def test_requests(name, ranks):
    launched.expect("request_checks", name, ranks)


@pytest.mark.parametrize("name", [*launched.names("request_checks"), "end"])
def test_requests_without_a_thread(name):
    launched.expect("request_checks", name, 2, ("PACELINE_PROGRESS", "caller"))


@pytest.mark.parametrize("name", [*launched.names("shared_checks"), "end"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5] if LONG else [2, 3])
def test_shared_arrays(name, ranks):
    launched.expect("shared_checks", name, ranks)
