"""What exchanges the gradients of a model: one Overlap or BSP at a time.

Two of them would exchange a gradient twice.
"""

import weakref
from typing import Protocol

from torch import nn

from paceline.errors import UsageError


class Holder(Protocol):
    """An Overlap or a BSP."""

    call: str  # what made it: "overlap()" or "BSP"
    parameters: list[nn.Parameter]  # whose gradients it exchanges

    def remove(self) -> None: ...


# Not in the model itself, of which there are copies. A holder must not hold its model.
_of_models: weakref.WeakKeyDictionary[nn.Module, Holder] = weakref.WeakKeyDictionary()


def make_room(model: nn.Module, named: list[tuple[str, nn.Parameter]], call: str) -> None:
    """Takes the former holder of this model away. Raises UsageError where another model's exchanges
    some of the parameters."""
    names = {id(parameter): name for name, parameter in named}
    for other, holder in list(_of_models.items()):
        both = [id(p) for p in holder.parameters if id(p) in names] if other is not model else []
        if both:
            raise UsageError(
                f"{call.removesuffix('()').lower()}: {names[both[0]]} belongs to another model as "
                f"well, whose {holder.call} exchanges its gradient. Call remove() of that one "
                f"first, or {call} of a model that has both.")
    if model in _of_models:
        _of_models[model].remove()


def hold(model: nn.Module, holder: Holder) -> None:
    """Keeps the holder until the model is gone, let_go() is called, or make_room() is."""
    _of_models[model] = holder


def let_go(model: nn.Module | None, holder: Holder) -> None:
    """The model, unless it is gone, has this holder no more."""
    if model is not None and _of_models.get(model) is holder:
        del _of_models[model]
