"""Text in phases: each layer works with a small set of experts, which changes all at once."""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError
from traces.generators.shape import Drawn, Statistic, TextShape, probability


@dataclass(frozen=True)
class Phases:
    """Every `phase_tokens` rows each layer gets a new set of `working_set` experts, a share
    `carried` of which was in the set before. A row draws its experts from the set, all alike."""

    phase_tokens: int = 128
    working_set: int = 12
    carried: float = 0.25

    def __post_init__(self) -> None:
        probability("carried", self.carried)
        for name in ("phase_tokens", "working_set"):
            if getattr(self, name) < 1:
                raise UserError(f"{name}={getattr(self, name)}, must be at least 1")

    @property
    def staying(self) -> int:
        """Experts of a set that stay."""
        return round(self.carried * self.working_set)


def phase_experts(law: Phases, shape: TextShape, seed: int) -> NDArray[np.uint16]:
    """uint16 [rows, L, K]. Phases run on over the borders of requests."""
    size, arriving = law.working_set, law.working_set - law.staying
    if size < shape.top_k:
        raise UserError(f"working_set={size}, a row needs top_k={shape.top_k} experts")
    if size + arriving > shape.experts:
        raise UserError(
            f"working_set={size} and {arriving} new ones need {size + arriving} experts, there "
            f"are {shape.experts}"
        )
    generator = np.random.default_rng(seed)
    experts = np.empty((shape.rows, shape.layers, shape.top_k), np.uint16)
    everyone = np.arange(shape.experts)
    held = [generator.permutation(everyone)[:size] for _ in range(shape.layers)]
    for begin in range(0, shape.rows, law.phase_tokens):
        end = min(begin + law.phase_tokens, shape.rows)
        for layer in range(shape.layers):
            if begin:
                others = np.setdiff1d(everyone, held[layer])
                held[layer] = np.concatenate([
                    generator.permutation(held[layer])[: law.staying],
                    generator.permutation(others)[:arriving],
                ])  # fmt: skip
            rows = np.tile(held[layer], (end - begin, 1))
            experts[begin:end, layer] = generator.permuted(rows, axis=1)[:, : shape.top_k]
    return experts


def phase_statistics(law: Phases, drawn: Drawn) -> list[Statistic]:
    """Distinct experts of a whole phase, and the share of them that were in the phase before."""
    shape = drawn.shape
    begins = range(0, shape.rows - law.phase_tokens + 1, law.phase_tokens)
    used = [
        [set(drawn.experts[begin : begin + law.phase_tokens, layer].ravel().tolist())
         for begin in begins]
        for layer in range(shape.layers)
    ]  # fmt: skip
    if len(begins) < 2:
        raise UserError(
            f"phase_tokens={law.phase_tokens}: {shape.rows} rows hold fewer than two phases"
        )
    distinct = np.mean([len(one) for layer in used for one in layer])
    stayed = np.mean([
        len(later & earlier) / len(later)
        for layer in used
        for earlier, later in itertools.pairwise(layer)
    ])  # fmt: skip
    # A short phase does not get round to all of its set.
    left_out = (1 - shape.top_k / law.working_set) ** law.phase_tokens
    expected = law.working_set * (1 - left_out)
    return [
        Statistic("distinct experts of a phase", expected, float(distinct)),
        Statistic(
            "share of them in the phase before", law.staying / law.working_set, float(stayed)
        ),
    ]
