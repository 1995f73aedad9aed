"""What a search may change: parameters of a policy with their ranges, each checked by the parts
that the policy is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import optuna

from experiments.policy_choice import PolicyChoice
from experiments.unknown import unknown
from policies.errors import UserError

GAMMA = "gamma"
POINTS = 5  # values of a range that a picture of one parameter shows


@dataclass(frozen=True)
class Axis:
    """One parameter: the numbers from `low` to `high`, or the given `choices`. `default`: where the
    search begins."""

    name: str
    default: Any
    low: float = 0
    high: float = 0
    choices: tuple[Any, ...] = ()

    @property
    def whole(self) -> bool:
        """True for whole numbers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def distribution(self) -> optuna.distributions.BaseDistribution:
        """As Optuna writes it."""
        if self.choices:
            return optuna.distributions.CategoricalDistribution(self.choices)
        if self.whole:
            return optuna.distributions.IntDistribution(int(self.low), int(self.high))
        return optuna.distributions.FloatDistribution(self.low, self.high)

    def holds(self, value: Any) -> bool:
        """True if `value` can be drawn."""
        return value in self.choices if self.choices else self.low <= value <= self.high

    def points(self) -> list[Any]:
        """Values that show the whole range."""
        if self.choices:
            return list(self.choices)
        steps = [self.low + (self.high - self.low) * step / (POINTS - 1) for step in range(POINTS)]
        return sorted({round(step) for step in steps}) if self.whole else steps


def space_of(
    choice: PolicyChoice,
    ranges: Mapping[str, Any],
    wanted: Sequence[str] | None,
    gamma: int | None,
    gamma_limit: int,
) -> list[Axis]:
    """The axes of `choice`, in the order of its file, gamma first where `gamma`, its default, is
    given. `wanted`: only these. UserError for what cannot be searched."""
    defaults = ({} if gamma is None else {GAMMA: gamma}) | dict(choice.parameters)
    possible = [name for name in defaults if ranges.get(name) is not None]
    for name in wanted or ():
        if name not in possible:
            raise unknown(f"parameter with a range of policy {choice.name}", name, possible)
    axes = [
        axis_of(name, defaults[name], ranges[name], gamma_limit)
        for name in possible
        if wanted is None or name in wanted
    ]
    if not axes:
        raise UserError(f"policy {choice.name} has no parameter with a range; see conf/ranges")
    for axis in axes:
        check_axis(choice, axis)
    return axes


def axis_of(name: str, default: Any, values: Any, gamma_limit: int) -> Axis:
    """The axis that the ranges' entry for `name` describes; the default is always a choice."""
    if not isinstance(values, list) or len(values) < 2:
        raise UserError(f"ranges.{name}={values}: two numbers or a list of choices, or null")
    numbers = [one for one in values if isinstance(one, int | float) and not isinstance(one, bool)]
    if len(values) > 2 or len(numbers) < 2:
        return Axis(name, default, choices=tuple(dict.fromkeys([default, *values])))
    low, high = values
    if name == GAMMA:
        low, high = max(low, 1), min(high, gamma_limit)
    if low >= high:
        raise UserError(f"ranges.{name}={values}: from {low} to {high} there is nothing to search")
    return Axis(name, default, low, high)


def check_axis(choice: PolicyChoice, axis: Axis) -> None:
    """UserError if the policy's parts refuse an end of the range, or a choice."""
    if axis.name == GAMMA:
        return
    for value in axis.choices or (axis.low, axis.high):
        try:
            with_values(choice, {axis.name: value})[0].build()
        except UserError as error:
            raise UserError(f"ranges.{axis.name}: {error}") from error


def with_values(choice: PolicyChoice, values: Mapping[str, Any]) -> tuple[PolicyChoice, int | None]:
    """(`choice` with these parameters, gamma if it is among them)."""
    own = {key: value for key, value in values.items() if key != GAMMA}
    parameters = {**choice.parameters, **own}
    return replace(choice, parameters=parameters), values.get(GAMMA)
