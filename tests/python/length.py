"""How much is tried: in the usual run what finds most faults, with PACELINE_LONG=1 all there is
(running.py)."""

import os

import pytest
from dev import slowness

SLOWNESS = slowness.factor()
LONG = bool(os.environ.get("PACELINE_LONG"))
REASON = "PACELINE_LONG=1 tries this, too"

in_long = pytest.mark.long


def param(*values):
    """A case of the long run, among others of pytest.mark.parametrize."""
    return pytest.param(*values, marks=in_long)


def each(name, few, more=()):
    """pytest.mark.parametrize: `few` always, `more` in the long run; Mpis go by their names."""
    return pytest.mark.parametrize(name, [*few, *map(param, more)], ids=str)
