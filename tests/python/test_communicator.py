"""Collectives through paceline.Communicator, on 1, 2, 3, 5 and 8 ranks of one machine."""

import launched
import pytest
from length import each

pytestmark = pytest.mark.ranks

TORCH = ("WITH_TORCH", "1")


@pytest.mark.parametrize("name", [*launched.names("collective_checks"), "end"])
@each("ranks", [1, 3], [2, 5, 8])
def test_collectives(name, ranks):
    settings = [TORCH] if ranks in (2, 5) else []
    launched.expect("collective_checks", name, ranks, *settings)


@pytest.mark.parametrize("name", [*launched.names("request_checks"), "end"])
@each("ranks", [3], [1, 2, 5])
def test_requests(name, ranks):
    launched.expect("request_checks", name, ranks)


@pytest.mark.parametrize("name", [*launched.names("request_checks"), "end"])
def test_requests_without_a_thread(name):
    launched.expect("request_checks", name, 2, ("PACELINE_PROGRESS", "caller"))


@pytest.mark.parametrize("name", [*launched.names("shared_checks"), "end"])
@each("ranks", [3], [1, 2, 5])
def test_shared_arrays(name, ranks):
    launched.expect("shared_checks", name, ranks, TORCH)
