"""Estimators: which utility an expert has, from the signals of the passes so far."""

from __future__ import annotations

from dataclasses import dataclass

from policies import kinds
from policies.parts.part import Part


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
class Fixed(Part):
    """Utility 1 for the first experts of each layer, as many as its quota; 0 for the others."""

    kind = kinds.FIXED


@dataclass(frozen=True)
class FrequencyRecency(Part):
    """LFRU: activations so far per pass since the last one."""

    kind = kinds.FREQUENCY_RECENCY


@dataclass(frozen=True)
class Average(Part):
    """HybriMoE's score S <- weight * TopP(signal) + (1 - weight) * S; TopP keeps the
    `per_top_k` * top_k largest signals of a pass, 0 keeps all."""

    weight: float = 0.5
    per_top_k: int = 2
    kind = kinds.AVERAGE


@dataclass(frozen=True)
class Workload(Part):
    """DALI's windows: the sum of the signal over the last complete window of `passes` passes."""

    passes: int = 4
    kind = kinds.WORKLOAD


@dataclass(frozen=True)
class RequestMatrix(Part):
    """MoE-Infinity: activations of the most similar past request; `capacity` requests are kept,
    layers late in the model weigh less."""

    capacity: int = 32
    kind = kinds.REQUEST_MATRIX


@dataclass(frozen=True)
class Reuse(Part):
    """Discounted uses to come, learned while running from rates, tokens and the experts before,
    corrected by the drafted tokens; see policies.estimators.reuse. `discount` per pass; `decay` of
    the rates per row and `learning` of the shares of a token."""

    decay: float = 0.9
    token_weight: float = 0.3
    learning: float = 0.3
    buckets: int = 4096
    discount: float = 0.9
    kind = kinds.REUSE

    def needs(self) -> frozenset[str]:
        """Which tokens were drafted, if they count."""
        return frozenset({"draft_tokens"} if self.token_weight > 0.0 else ())

    def wishes(self) -> frozenset[str]:
        """Tokens that are not known leave the values as recency and rate have them."""
        return self.needs()


@dataclass(frozen=True)
class NextUse(Part):
    """Clairvoyant: the next pass that activates the expert (Belady)."""

    kind = kinds.NEXT_USE


@dataclass(frozen=True)
class Upcoming(Part):
    """Clairvoyant: activation count in the coming pass (same-window oracle)."""

    kind = kinds.UPCOMING


@dataclass(frozen=True)
class UsesToCome(Part):
    """Clairvoyant: the discounted uses to come that Reuse estimates."""

    discount: float = 0.9
    kind = kinds.USES_TO_COME
