"""Quotas: how many slots each layer may hold."""

from __future__ import annotations

from dataclasses import dataclass

from policies import kinds
from policies.parts.part import Part


@dataclass(frozen=True)
class PerLayer(Part):
    """The same number for every layer."""

    kind = kinds.PER_LAYER


@dataclass(frozen=True)
class Pool(Part):
    """No quota: all layers share all slots."""

    kind = kinds.POOL


@dataclass(frozen=True)
class WholeLayers(Part):
    """All experts of the last layers, as far as the slots go; nothing for the others."""

    kind = kinds.WHOLE_LAYERS


@dataclass(frozen=True)
class Shallow(Part):
    """Falling linearly with the layer: the first has (1 + bias) times the mean, the last (1 - bias)
    times."""

    bias: float = 0.5
    kind = kinds.SHALLOW


@dataclass(frozen=True)
class MissCurves(Part):
    """AdapMoE: even at first; after `profile_passes` passes the division with the fewest misses
    under each layer's measured LRU miss curve."""

    profile_passes: int = 16
    kind = kinds.MISS_CURVES


QUOTAS: dict[str, type[Part]] = {
    "per_layer": PerLayer,
    "pool": Pool,
    "whole_layers": WholeLayers,
    "shallow": Shallow,
    "miss_curves": MissCurves,
}
