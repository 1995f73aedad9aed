"""Movers: what to copy in ahead of need, and what to drop for it."""

from __future__ import annotations

from dataclasses import dataclass

from policies import kinds
from policies.parts.part import Part, next_layers


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
    """Prefetches the predicted experts of the next `horizon` layers.

    `per_layer`: at most so many of each layer's missing ones at a time, 0 for all. `cutoff`: only
    layers whose predicted copies fit the time before them (SP-MoE's latency model). `then_utility`:
    credits left over move the experts of highest utility in.
    """

    horizon: int = 1
    per_layer: int = 0
    cutoff: bool = False
    then_utility: bool = False
    kind = kinds.NEXT_LAYER

    def needs(self) -> frozenset[str]:
        """Predictions for each layer of the horizon."""
        return next_layers(self.horizon)


@dataclass(frozen=True)
class Unified(Part):
    """One utility for prefetch and eviction, both bounded by tau (asynchronous engine)."""

    kind = kinds.UNIFIED


@dataclass(frozen=True)
class HighestUtility(Part):
    """Keeps the experts of highest utility resident, without a threshold. `proximity`: how much
    less a candidate of the farthest layer weighs than one of the next layer (MoE-Infinity: 1)."""

    proximity: float = 0.0
    kind = kinds.STATIC_SET


@dataclass(frozen=True)
class CodeQueue(Part):
    """The prefetch queue of MoE-SpAc's released code; see policies.movers.code_queue."""

    levels: int = 5
    kind = kinds.CODE_QUEUE


@dataclass(frozen=True)
class SavedTime(Part):
    """Most expected CPU time saved first, while it exceeds what the victim saves; `margin` keeps
    near-equal experts from trading places. See policies.movers.saved_time."""

    margin: float = 0.25
    horizon: int = 0
    idle_margin: float = 0.25
    kind = kinds.SAVED_TIME

    def needs(self) -> frozenset[str]:
        """Predictions, where asked for."""
        return next_layers(self.horizon)
