"""Windows: how many tokens are drafted in the coming pass."""

from __future__ import annotations

from dataclasses import dataclass

from policies import kinds
from policies.parts.part import Part


@dataclass(frozen=True)
class FixedWindow(Part):
    """The same gamma in every pass; None: the run's gamma; 0: no speculation."""

    gamma: int | None = None
    kind = kinds.FIXED_WINDOW

    def values(self) -> tuple[float, ...]:
        """-1 for None."""
        return (-1.0 if self.gamma is None else float(self.gamma),)

    def choose(self, gamma_max: int) -> int:
        """Draft length of the coming pass."""
        return gamma_max if self.gamma is None else min(self.gamma, gamma_max)


@dataclass(frozen=True)
class Roofline(Part):
    """MoE-SpeQ's governor: gamma at which the copies of a pass are best amortised over its expected
    tokens; see policies.windows.roofline."""

    decay: float = 0.95
    kind = kinds.ROOFLINE


@dataclass(frozen=True)
class ExpectedGain(Part):
    """Most expected tokens per modelled second, 0 included; see policies.windows.expected_gain.
    `decay` of times and `fade` of trials, per pass; every `explore` passes a longer draft is tried,
    and one token more where acceptances `hope` standard errors above the estimate would pay."""

    decay: float = 0.98
    explore: int = 64
    hope: float = 0.5
    fade: float = 0.99
    kind = kinds.EXPECTED_GAIN
