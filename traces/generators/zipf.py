"""Independent rows whose experts are chosen by Zipf's law: popularity without any locality."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError
from traces.generators.shape import Drawn, Statistic, TextShape


@dataclass(frozen=True)
class Zipf:
    """`zipf`: the expert of rank r is chosen in proportion to r ** -zipf, but by no row twice."""

    zipf: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.zipf <= 10:
            raise UserError(f"zipf={self.zipf}, must be between 0 and 10")


def zipf_experts(law: Zipf, shape: TextShape, seed: int) -> NDArray[np.uint16]:
    """uint16 [rows, L, K]. Each layer has its own order of popularity."""
    generator = np.random.default_rng(seed)
    chance = inclusion(law.zipf, shape.experts, shape.top_k)
    experts = np.empty((shape.rows, shape.layers, shape.top_k), np.uint16)
    for layer in range(shape.layers):
        names = generator.permutation(shape.experts)
        experts[:, layer] = names[systematic_sample(chance, shape.rows, generator)]
    return experts


def zipf_statistics(law: Zipf, drawn: Drawn) -> list[Statistic]:
    """Share of the activations that goes to the most popular expert, and to the first tenth."""
    shape = drawn.shape
    asked = inclusion(law.zipf, shape.experts, shape.top_k) / shape.top_k
    found = np.mean([ranked_shares(drawn, layer) for layer in range(shape.layers)], axis=0)
    tenth = max(shape.experts // 10, 1)
    return [
        Statistic("share of the most popular expert", asked[0], found[0]),
        Statistic(
            f"share of the {tenth} most popular experts", asked[:tenth].sum(), found[:tenth].sum()
        ),
    ]


def ranked_shares(drawn: Drawn, layer: int) -> NDArray[np.float64]:
    """float64 [E], falling: each expert's share of a layer's activations."""
    counts = np.bincount(drawn.experts[:, layer].ravel(), minlength=drawn.shape.experts)
    shares: NDArray[np.float64] = np.sort(counts)[::-1] / counts.sum()
    return shares


def inclusion(zipf: float, experts: int, top_k: int) -> NDArray[np.float64]:
    """float64 [E], by rank: chance that a row has the expert. They add up to `top_k`; an expert
    that would exceed 1 is in every row, and the others share the rest by the same law."""
    weight = np.arange(1, experts + 1, dtype=np.float64) ** -zipf
    chance = np.ones(experts)
    for certain in range(top_k + 1):
        rest = weight[certain:] / weight[certain:].sum() * (top_k - certain)
        if certain == top_k or rest[0] <= 1:
            chance[certain:] = rest
            break
    return chance


def systematic_sample(
    chance: NDArray[np.float64], rows: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """int64 [rows, K]: each row holds item i with probability chance[i], exactly; K = chance.sum().

    Systematic sampling (Madow 1949): items in random order as pieces of a line of length K, and a
    comb of K points one apart thrown onto it. A piece is at most 1 long, so none is hit twice.
    """
    count = round(float(chance.sum()))
    order = generator.permuted(np.tile(np.arange(len(chance)), (rows, 1)), axis=1)
    ends = np.cumsum(chance[order], axis=1)
    ends[:, -1] = count  # without the rounding of the sum
    teeth = np.floor(ends - generator.random((rows, 1)))
    hit = np.diff(teeth, axis=1, prepend=-1) > 0
    return order[hit].reshape(rows, count)
