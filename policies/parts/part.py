"""Part: a frozen record of parameters with the integer that selects its kernel."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from policies import kinds

SIGNALS = {"count": kinds.COUNT, "bit": kinds.BIT, "mass": kinds.MASS}


@dataclass(frozen=True)
class Part:
    """A part's fields, in order, become its row of kernel parameters."""

    kind: ClassVar[int]

    def values(self) -> tuple[float, ...]:
        """Parameters in field order, as the kernels index them."""
        return tuple(float(value) for value in asdict(self).values())

    def needs(self) -> frozenset[str]:
        """Priced observations that the part reads."""
        return frozenset()


def next_layers(horizon: int) -> frozenset[str]:
    """The needs of a part that reads predictions of the next `horizon` layers."""
    return frozenset(f"next_layer_{step + 1}" for step in range(horizon))


def describe(part: Any) -> dict[str, Any]:
    """A part as plain data: its class name and its fields."""
    return {"part": type(part).__name__, **asdict(part)}
