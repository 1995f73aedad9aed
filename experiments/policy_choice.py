"""Which policies a command uses: names from conf/policy, with parameters, ready to be built."""

import copy
import importlib
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from omegaconf import OmegaConf

from experiments.commands import CONF, options
from experiments.policy_file import is_path, read_policy
from experiments.unknown import unknown
from policies.composed import ComposedPolicy
from policies.errors import UserError

TARGET = "_target_"
COMMON = ("name", "needs", "parameters", "reset", "start_request", "start_pass", "end_pass")
CALLBACKS = ("draft_step", "enter_layer", "leave_layer")


@dataclass(frozen=True)
class PolicyChoice:
    """A policy by name with all its parameters; `changed` holds those that differ from its file.
    `title`: its name in tables where a file of the user's gives one; `gamma`: drafts per pass that
    such a file names."""

    name: str
    target: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    changed: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    gamma: int | None = None

    @property
    def label(self) -> str:
        """The name in tables: `spac`, or `spac up=3` where parameters were changed."""
        words = (f"{key}={value}" for key, value in self.changed.items())
        return " ".join([self.title or self.name, *words])

    def build(self) -> Any:
        """A fresh policy: each run gets its own."""
        make = named_function(self.target, f"policy {self.name}")
        try:
            policy = make(**self.parameters)
        except (TypeError, ValueError, AttributeError) as error:
            raise UserError(f"policy {self.name}: {error}") from error
        lacking = [name for name in _members(policy) if not hasattr(policy, name)]
        if lacking:
            raise UserError(
                f"policy {self.name}: what {self.target} returns lacks {', '.join(lacking)}; "
                "policies/template.py shows a whole policy"
            )
        return policy


def _members(policy: object) -> Sequence[str]:
    """What a policy must have: one made of parts has no callbacks, its session composes them."""
    return COMMON if isinstance(policy, ComposedPolicy) else (*COMMON, *CALLBACKS)


def named_function(target: str, of: str) -> Callable[..., Any]:
    """The class or function with the import path `target`; UserError, which begins with `of`. Not
    Hydra's instantiate: it looks names up as attributes, where a function may hide the module of
    the same name."""
    module, _, name = target.rpartition(".")
    try:
        found = getattr(import_anywhere(module), name)
    except Exception as error:  # the module is the user's own and may do anything
        said = f"{type(error).__name__}: {error}"
        raise UserError(f"{of}: cannot import {target} ({said})") from error
    if not callable(found):
        raise UserError(f"{of}: {target} is no class or function")
    function: Callable[..., Any] = found
    return function


def import_anywhere(module: str) -> ModuleType:
    """A module on Python's path, else one in the working directory, where users keep their own: an
    installed command does not look there by itself."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # Not what the module itself imports. A folder of the first name may lie on the path too.
        if not f"{module}.".startswith(f"{error.name}."):
            raise
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        return importlib.import_module(module)
    finally:
        sys.path.remove(here)


def choose_policies(
    names: Sequence[str], overrides: Mapping[str, Any] | None = None
) -> list[PolicyChoice]:
    """The named policies, in order. `overrides` maps parameters to values if there is one policy,
    else names to such maps. A list as a value is a grid.

    A name with a dot is the import path of a function that returns a policy; one with a slash, or
    that ends in .yaml, is a file that spac tune wrote, or its folder.
    """
    given = copy.deepcopy(dict(overrides or {}))
    choices = []
    for name in names:
        file = read_policy(name) if is_path(name) else None
        target, parameters = _read(name) if file is None else _read(file.policy)
        if file is not None:
            parameters = _with_values(name, parameters, file.parameters)
        own = _taken(given, name)
        if len(names) == 1:
            own |= given
            given = {}
        foreign = "." in name and file is None
        for key in own:
            if key not in parameters and not foreign:
                raise unknown(f"parameter of policy {name}", key, parameters)
        for values in _grid(own, parameters):
            changed = {key: value for key, value in values.items() if value != parameters.get(key)}
            choice = PolicyChoice(name, target, {**parameters, **values}, changed)
            if file is not None:
                choice = replace(choice, name=file.policy, title=file.name, gamma=file.gamma)
            choices.append(choice)
    if given:
        raise UserError(
            f"policy.{next(iter(given))}: with several policies write "
            f"policy.<name>.<parameter>=..; the policies are {', '.join(names)}"
        )
    labels = [choice.label for choice in choices]
    for label in labels:
        if labels.count(label) > 1:
            raise UserError(f"policy {label} is listed twice")
    return choices


def _read(name: str) -> tuple[str, dict[str, Any]]:
    """(target, parameters) of a policy name."""
    if "." in name:
        return name, {}
    if name not in options("policy"):
        raise unknown("policy", name, options("policy"))
    content = OmegaConf.to_container(OmegaConf.load(CONF / "policy" / f"{name}.yaml"), resolve=True)
    assert isinstance(content, dict)
    parameters = {str(key): value for key, value in content.items()}
    return str(parameters.pop(TARGET)), parameters


def _with_values(
    path: str, parameters: Mapping[str, Any], values: Mapping[str, Any]
) -> dict[str, Any]:
    """`parameters` with the values of the file at `path`."""
    for key in values:
        if key not in parameters:
            raise unknown(f"parameter in {path}", key, parameters)
    return {**parameters, **values}


def _taken(given: dict[str, Any], name: str) -> dict[str, Any]:
    """Remove and return the parameters under `name`. Dots of a name in Python are levels, as Hydra
    reads `policy.my_module.MyPolicy.key=`."""
    if isinstance(given.get(name), Mapping):
        return dict(given.pop(name))
    first, dot, rest = name.partition(".")
    inner = given.get(first)
    if not dot or not isinstance(inner, dict):
        return {}
    taken = _taken(inner, rest)
    if not inner:
        del given[first]
    return taken


def _grid(own: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All combinations of list values; a parameter that is a list by default takes lists as is."""
    axes = [
        value if isinstance(value, list) and not isinstance(parameters.get(key), list) else [value]
        for key, value in own.items()
    ]
    return [dict(zip(own, values, strict=True)) for values in itertools.product(*axes)]
