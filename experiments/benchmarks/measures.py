"""Measure, one number with its goal; Bench, what sections measure with, and in which size."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from experiments.machine import Machine
from experiments.policy_choice import PolicyChoice
from traces.synthetic_replay import BankShape


class LeftOut(Exception):
    """A section that cannot be measured here; the message says why."""


@dataclass(frozen=True)
class Measure:
    """`goal` with `bound` ("at most" or "at least"); None where a number has no goal."""

    section: str
    what: str
    value: float
    unit: str
    bound: Literal["at most", "at least"] | None = None
    goal: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without one."""
        if self.goal is None:
            return None
        return self.value <= self.goal if self.bound == "at most" else self.value >= self.goal


@dataclass(frozen=True)
class Size:
    """How much is measured. `passes`: about so many in a timed run, `few_passes` where the SimPy
    engine plays too; `instances`: of a program, `cbc_instances` of them also by CBC; `cells`: of
    the grid; `cold`: also compile everything anew."""

    name: str
    shape: BankShape
    gamma: int
    passes: int
    few_passes: int
    decided_passes: int
    cache_tokens: int
    instances: int
    cbc_instances: int
    cells: int
    repeats: int
    cold: bool


SIZES = {
    "full": Size("full", BankShape(), 8, 1000, 40, 24, 8192, 2000, 20, 200, 3, True),
    "small": Size(
        "small", BankShape(layers=3, experts=16, top_k=2, bank=16), 4, 12, 6, 6, 64, 40, 1, 6, 1,
        False,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Bench:
    """`machine`: whose costs the runs use; `policies`: whose decisions are timed; `folder`: for
    files."""

    machine: Machine
    size: Size
    policies: Sequence[PolicyChoice]
    folder: Path
