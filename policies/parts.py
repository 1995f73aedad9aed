"""The parts of which most published systems are made, as frozen records of their parameters.

signal -> estimator (utility per expert) x balancer (who computes what in a layer) x mover (what to
copy in, what to
drop), plus an optional window (gamma per pass) and quota (slots per layer). Ablations change one
field.
"""

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


@dataclass(frozen=True)
class NoEstimator(Part):
    """Utility 0 for every expert."""

    kind = kinds.NOTHING


@dataclass(frozen=True)
class Recency(Part):
    """Pass of the last activation (LRU)."""

    kind = kinds.RECENCY


@dataclass(frozen=True)
class Decayed(Part):
    """Exponentially decayed sum of the signal; decay 1 is LFU."""

    decay: float = 0.9
    kind = kinds.DECAYED


@dataclass(frozen=True)
class Last(Part):
    """The signal of the last pass alone (no inertia)."""

    kind = kinds.LAST


@dataclass(frozen=True)
class Inertia(Part):
    """MoE-SpAc's levels 0..K; see policies.estimators.inertia."""

    levels: int = 5
    up: int = 2
    down: int = 1
    calibrate: bool = True
    period: int = 8
    kind = kinds.INERTIA


@dataclass(frozen=True)
class StaticProfile(Part):
    """Counts of the first passes, then frozen."""

    profile_passes: int = 16
    kind = kinds.STATIC


@dataclass(frozen=True)
class NextUse(Part):
    """Clairvoyant: the next pass that activates the expert (Belady)."""

    kind = kinds.NEXT_USE


@dataclass(frozen=True)
class Upcoming(Part):
    """Clairvoyant: activation count in the coming pass (same-window oracle)."""

    kind = kinds.UPCOMING


@dataclass(frozen=True)
class AllCpu(Part):
    """Every expert on the CPU."""

    kind = kinds.ALL_CPU


@dataclass(frozen=True)
class ByResidency(Part):
    """Residents on the GPU, misses on the CPU."""

    kind = kinds.RESIDENT


@dataclass(frozen=True)
class FetchMisses(Part):
    """Misses are fetched and stay; `bypass` streams those that would be the first victims
    themselves."""

    levels: int = 0
    io_share: float = 0.0
    fixed_tau: int = 0
    bypass: bool = False
    kind = kinds.FETCH_MISSES


@dataclass(frozen=True)
class Threshold(Part):
    """MoE-SpAc's threshold program; see policies.balancers.threshold. `fixed_tau` > 0 replaces the
    program."""

    levels: int = 5
    io_share: float = 1.0
    fixed_tau: int = 0
    kind = kinds.THRESHOLD


@dataclass(frozen=True)
class Still(Part):
    """No prefetch."""

    kind = kinds.STILL


@dataclass(frozen=True)
class AdmitMisses(Part):
    """Copies in what the CPU had to compute."""

    kind = kinds.ADMIT


@dataclass(frozen=True)
class NextLayer(Part):
    """Prefetches the predicted experts of the next `horizon` layers."""

    horizon: int = 1
    kind = kinds.NEXT_LAYER


@dataclass(frozen=True)
class Unified(Part):
    """One utility for prefetch and eviction, both bounded by tau (asynchronous engine)."""

    kind = kinds.UNIFIED


@dataclass(frozen=True)
class HighestUtility(Part):
    """Keeps the experts of highest utility resident, without a threshold."""

    kind = kinds.STATIC_SET


@dataclass(frozen=True)
class FixedWindow:
    """The same gamma in every pass; None: the run's gamma."""

    gamma: int | None = None

    def choose(self, gamma_max: int) -> int:
        """Draft length of the coming pass."""
        return gamma_max if self.gamma is None else min(self.gamma, gamma_max)


def describe(part: Any) -> dict[str, Any]:
    """A part as plain data: its class name and its fields."""
    return {"part": type(part).__name__, **asdict(part)}
