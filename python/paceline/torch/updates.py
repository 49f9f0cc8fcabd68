"""Runs the optimizer's step of each layer as a task of the dependency engine."""

import collections
import functools
import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from paceline.engine import Engine, Task, Variable
from paceline.errors import RefusalError, UsageError
from paceline.torch.hooks import Hook

_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")


class Layer:
    """The parameters of one module, which are updated together."""

    def __init__(self, name: str, numbers: list[int]):
        self.name, self.numbers = name, numbers
        self.task: Task | None = None  # its last update


class Updates:
    """Updates each layer of `model` when its gradients are there. The next forward pass of a layer
    waits only for its own update. Saving and loading the model or the optimizer wait for all
    layers. Layers are updated in the order of the model."""

    def __init__(
        self, model: nn.Module, named: Sequence[tuple[str, nn.Parameter]],
        optimizer: torch.optim.Optimizer, engine: Engine, clip_norm: float | None,
    ):  # fmt: skip
        self._parameters = [parameter for _, parameter in named]
        self._optimizer, self._engine, self._clip_norm = optimizer, engine, clip_norm
        self._group_of = _groups(optimizer, named)
        self._clipped = engine.variable("the norm of all gradients")
        self._layers: list[Layer] = []
        self._handles: list[Any] = []
        self._watch(model, named)

    def start(
        self, grads: list[torch.Tensor], variables: list[Variable], used: list[bool]
    ) -> None:  # fmt: skip
        """Pushes the updates of the used parameters by these gradients, for which the variables
        stand. Parameters have no gradient afterwards."""
        options = [{key: value for key, value in group.items() if key != "params"}
                   for group in self._optimizer.param_groups]
        norms: list[Any] = []
        if self._clip_norm is not None:
            clip = functools.partial(_clip, grads, self._clip_norm)
            self._engine.push(clip, write=[*variables, self._clipped],
                              name="clipping of gradients")
            norms.append(self._clipped)
        for place, layer in enumerate(self._layers):
            own = {i: grads[i] for i in layer.numbers if used[i]}
            if not own:
                continue
            layer.task = self._engine.push(
                functools.partial(self._update, own, options),
                read=[*(variables[i] for i in own), *norms],
                priority=len(self._layers) - place, name=f"update of {layer.name}",
            )  # fmt: skip
        for parameter in self._parameters:
            parameter.grad = None

    def wait(self) -> None:
        """Returns when all layers are updated. Raises their errors."""
        for layer in self._layers:
            self._wait_for(layer)

    def remove(self) -> None:
        """Completes the updates under way, and removes the hooks."""
        self.wait()
        for handle in self._handles:
            handle.remove()

    def _update(self, grads: dict[int, torch.Tensor], options: list[dict[str, Any]]) -> None:
        # Stand-ins with the same memory: the program may set or clear the gradients meanwhile.
        groups: dict[int, list[nn.Parameter]] = {}
        state: Any = collections.defaultdict(dict)
        pairs = []
        for i, grad in grads.items():
            parameter = self._parameters[i]
            alias = nn.Parameter(parameter.detach())
            alias.grad = grad
            if parameter in self._optimizer.state:
                state[alias] = self._optimizer.state[parameter]
            groups.setdefault(self._group_of[i], []).append(alias)
            pairs.append((parameter, alias))
        part = object.__new__(type(self._optimizer))
        part.__dict__ = {key: value for key, value in vars(self._optimizer).items()
                         if key != "step"}  # which a scheduler binds to the whole
        part.state = state
        part.param_groups = [{"params": own, **options[g]} for g, own in groups.items()]
        part.step()
        for parameter, alias in pairs:
            self._optimizer.state[parameter] = state[alias]

    def _wait_for(self, layer: Layer) -> None:
        task, layer.task = layer.task, None
        if task is not None:
            task.wait()

    def _watch(self, model: nn.Module, named: Sequence[tuple[str, nn.Parameter]]) -> None:
        number_of = {id(parameter): i for i, (_, parameter) in enumerate(named)}
        layer_of: dict[int, Layer] = {}
        for name, module in model.named_modules():
            own = [number_of[id(p)] for p in module.parameters(recurse=False)
                   if id(p) in number_of]
            new = [i for i in own if i not in layer_of]
            if new:
                self._layers.append(Layer(name or "the model", new))
                layer_of.update(dict.fromkeys(new, self._layers[-1]))
        wait = Hook(functools.partial(_wait, weakref.ref(self)))  # its optimizer is held by tasks
        for module in model.modules():
            if next(module.parameters(recurse=False), None) is None:
                continue
            # Includes modules below: such a module may read them without calling them.
            below = [layer_of[number_of[id(p)]] for p in module.parameters() if id(p) in number_of]
            before = Hook(functools.partial(self._before, list(dict.fromkeys(below))))
            self._handles += [module.register_forward_pre_hook(before),
                              module.register_state_dict_pre_hook(wait),
                              module.register_load_state_dict_pre_hook(wait)]
        for register in (self._optimizer.register_state_dict_pre_hook,
                         self._optimizer.register_load_state_dict_pre_hook):
            self._handles.append(register(wait))

    def _before(self, layers: list[Layer], module: nn.Module, _: Any) -> None:
        if not module.training:
            self.wait()  # short cuts of evaluation read what they do not call
        for layer in layers:
            self._wait_for(layer)


def _wait(reference: "weakref.ref[Updates]", *_: Any) -> None:
    updates = reference()
    if updates is not None:
        updates.wait()


def _clip(grads: list[torch.Tensor], most: float) -> None:
    """Clips as torch.nn.utils.clip_grad_norm_ does."""
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in grads]))
    scale = torch.clamp(most / (norm + 1e-6), max=1.0)
    for grad in grads:
        grad.mul_(scale)


def _groups(
    optimizer: torch.optim.Optimizer, named: Sequence[tuple[str, nn.Parameter]]
) -> list[int]:
    """The number of each parameter's group. Raises errors for optimizers that cannot update layer
    by layer."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise RefusalError("overlap: LBFGS uses all gradients together, and cannot update one "
                           "layer alone. Leave out optimizer=, and call step() yourself.")
    if any(getattr(optimizer, hooks, None) for hooks in _HOOKS):
        raise RefusalError("overlap: the optimizer has hooks, which expect a step of all layers. "
                           "Leave out optimizer=, and call step() yourself.")
    found = {id(p): number for number, group in enumerate(optimizer.param_groups)
             for p in group["params"]}
    for name, parameter in named:
        if id(parameter) not in found:
            raise UsageError(f"overlap: the optimizer does not have the parameter {name}; it must "
                             "have all parameters that the model trains.")
    known = {id(parameter) for _, parameter in named}
    more = sum(number not in known for number in found)
    if more:
        raise UsageError(f"overlap: the optimizer has {more} parameters that the model does not "
                         "train; they would never be updated.")
    return [found[id(parameter)] for _, parameter in named]
