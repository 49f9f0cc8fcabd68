"""For all Python tests: nothing stays in shared memory after the last of them."""

import launched
import pytest


@pytest.fixture(scope="session", autouse=True)
def no_shared_memory_left():
    yield
    assert list(launched.shared_folder().iterdir()) == []
