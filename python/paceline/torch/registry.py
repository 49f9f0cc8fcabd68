"""Records the Overlap or BSP that exchanges the gradients of a model.

A model has one at a time: two would exchange a gradient twice.
"""

import weakref
from typing import Any, NamedTuple

from torch import nn

from paceline.errors import UsageError

Named = list[tuple[str, nn.Parameter]]


class Entry(NamedTuple):
    owner: Any  # the Overlap or BSP; it must not hold its model
    call: str  # that made it: "overlap()" or "BSP"
    parameters: set[int]  # ids of those whose gradients it exchanges


# Kept outside of the model, since models are copied.
_of_models: weakref.WeakKeyDictionary[nn.Module, Entry] = weakref.WeakKeyDictionary()


def remove_former(model: nn.Module, named: Named, call: str) -> None:
    """Calls remove() of the owner that exchanges this model's gradients now, if any. Raises
    UsageError if another model's Overlap or BSP exchanges some of these parameters."""
    for other, entry in list(_of_models.items()):
        both = [name for name, parameter in named if id(parameter) in entry.parameters]
        if both and other is not model:
            raise UsageError(
                f"{call.removesuffix('()').lower()}: {both[0]} belongs to another model as well, "
                f"whose {entry.call} exchanges its gradient. Call remove() of that one first, or "
                f"{call} of a model that has both.")
    if model in _of_models:
        _of_models[model].owner.remove()


def register(model: nn.Module, owner: Any, named: Named, call: str) -> None:
    """Records that `owner` exchanges the gradients, until unregister() or the end of the model."""
    _of_models[model] = Entry(owner, call, {id(parameter) for _, parameter in named})


def unregister(model: nn.Module | None, owner: Any) -> None:
    """Ends the record. Does nothing if the model has ended (None) or has another owner."""
    if model is not None and model in _of_models and _of_models[model].owner is owner:
        del _of_models[model]
