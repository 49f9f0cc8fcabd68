"""What differs between minors of torch: a real backend where Python can be one; who is told."""

import warnings

import launched
import pytest
from length import each

from paceline.provenance import TORCH

pytestmark = pytest.mark.ranks

pytest.importorskip("torch")
minors = pytest.importorskip("paceline.torch.minors")

real = pytest.mark.skipif(
    minors.Base is minors.AsGroup, reason="this torch lets no Python class be a Backend"
)


@real
@pytest.mark.parametrize("name", [*launched.names("minor_checks"), "end"])
@each("ranks", [2], [1, 3])
def test_real_backend(name, ranks):
    launched.expect("minor_checks", name, ranks)


def said(version):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        minors.warn_if_newer(version)
    return [str(warning.message) for warning in caught]


def test_a_newer_torch_is_named_once():
    major, minor = map(int, TORCH[1].split("."))
    newer = f"{major}.{minor + 1}.0+cpu"
    [sentence] = said(newer)
    assert newer in sentence and TORCH[1] in sentence and sentence.count(". ") == 0
    assert said(f"{major + 1}.0.0") and not said(f"{major}.{minor}.7") and not said("2.12.0+cu130")


def test_versions_of_another_form_are_taken():
    assert said("a0-git") == [] and said("") == []
