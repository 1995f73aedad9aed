"""Rows that keep experts of the row before with a given probability: locality, chosen exactly."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError
from traces.generators.shape import Drawn, Statistic, TextShape, probability
from traces.locality import reuse_from_previous


@dataclass(frozen=True)
class Markov:
    """`reuse`: share of a row's experts that the row before it in the same request has as well;
    `zipf`: newcomers are drawn with weights rank ** -zipf."""

    reuse: float = 0.43
    zipf: float = 0.0

    def __post_init__(self) -> None:
        probability("reuse", self.reuse)
        if not 0 <= self.zipf <= 10:
            raise UserError(f"zipf={self.zipf}, must be between 0 and 10")


def markov_experts(law: Markov, shape: TextShape, seed: int) -> NDArray[np.uint16]:
    """uint16 [rows, L, K].

    A newcomer is never one of the row before, so that reuse is `reuse` and not more by chance.
    """
    if shape.experts < 2 * shape.top_k:
        raise UserError(
            f"experts={shape.experts}: a row that keeps nothing needs {shape.top_k} others, so at "
            f"least {2 * shape.top_k} experts"
        )
    generator = np.random.default_rng(seed)
    size = (shape.layers, shape.experts)
    rank = generator.permuted(np.tile(np.arange(1, shape.experts + 1), (shape.layers, 1)), axis=1)
    popularity = -law.zipf * np.log(rank)
    experts = np.empty((shape.rows, shape.layers, shape.top_k), np.uint16)
    previous = np.zeros(size, np.bool_)
    for row in range(shape.rows):
        if row % shape.tokens == 0:
            previous[:] = False
        score = popularity + generator.gumbel(size=size)
        kept = generator.random(size) < law.reuse
        score = np.where(previous, np.where(kept, np.inf, -np.inf), score)
        chosen = np.argsort(-score, axis=1, kind="stable")[:, : shape.top_k]
        experts[row] = chosen
        previous[:] = False
        np.put_along_axis(previous, chosen, True, axis=1)
    return experts


def markov_statistics(law: Markov, drawn: Drawn) -> list[Statistic]:
    """Reuse from the row before."""
    measured = reuse_from_previous(drawn.text)
    return [Statistic("experts reused from the token before", law.reuse, measured)]
