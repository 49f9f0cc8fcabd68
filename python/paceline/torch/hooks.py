"""Hooks of a model that its copies do not have."""

from collections.abc import Callable
from typing import Any


class Hook:
    """Calls `call` with torch's arguments. In a copy of the module, by copy.deepcopy or pickle, the
    hook does nothing: Paceline trains only the original."""

    def __init__(self, call: Callable[..., Any]):
        self._call = call

    def __call__(self, *passed: Any) -> Any:
        return self._call(*passed)

    def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
        return _of_a_copy, ()


def _of_a_copy() -> Callable[..., None]:
    return _nothing


def _nothing(*_: Any) -> None: ...
