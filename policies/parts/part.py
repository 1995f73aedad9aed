"""Part: a frozen record of parameters with the integer that selects its kernel."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from policies import kinds
from policies.errors import UserError

# Parameters with limits of their own; all others are finite and not negative.
LARGEST = {"levels": 65, "horizon": 3, "decay": 1, "discount": 1}
LEAST = {"up": 1, "down": 1, "period": 1}
SIGNALS = {"count": kinds.COUNT, "bit": kinds.BIT, "mass": kinds.MASS}


@dataclass(frozen=True)
class Part:
    """A part's fields, in order, become its row of kernel parameters."""

    kind: ClassVar[int]

    def __post_init__(self) -> None:
        for one in fields(self):
            check_parameter(type(self).__name__, one.name, str(one.type), getattr(self, one.name))

    def values(self) -> tuple[float, ...]:
        """Parameters in field order, as the kernels index them."""
        return tuple(float(value) for value in asdict(self).values())

    def needs(self) -> frozenset[str]:
        """Priced observations that the part reads."""
        return frozenset()

    def wishes(self) -> frozenset[str]:
        """Those of them that the part can do without."""
        return frozenset()


def check_parameter(part: str, name: str, kind: str, value: Any) -> None:
    """UserError unless `value` is of the declared kind, finite and within its limits."""
    if kind == "bool":
        if not isinstance(value, bool):
            raise UserError(f"{part}.{name}={value!r}: must be true or false")
        return
    if kind not in ("int", "float"):
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UserError(f"{part}.{name}={value!r}: must be a finite number")
    if kind == "int" and not isinstance(value, int):
        raise UserError(f"{part}.{name}={value!r}: must be a whole number")
    most = LARGEST.get(name, math.inf)
    least = LEAST.get(name, 0)
    if not least <= value <= most:
        limit = f" and at most {most:g}" if most < math.inf else ""
        raise UserError(f"{part}.{name}={value!r}: must be at least {least}{limit}")


def next_layers(horizon: int) -> frozenset[str]:
    """The needs of a part that reads predictions of the next `horizon` layers."""
    return frozenset(f"next_layer_{step + 1}" for step in range(horizon))


def describe(part: Any) -> dict[str, Any]:
    """A part as plain data: its class name and its fields."""
    return {"part": type(part).__name__, **asdict(part)}
