"""Generators of synthetic routing with chosen statistics: an explicit table, one file each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traces.generators.adversary import Adversary, adversary_experts, adversary_statistics
from traces.generators.markov import Markov, markov_experts, markov_statistics
from traces.generators.phases import Phases, phase_experts, phase_statistics
from traces.generators.shape import Drawn, Statistic, TextShape
from traces.generators.zipf import Zipf, zipf_experts, zipf_statistics


@dataclass(frozen=True)
class Generator:
    """`law`: the dataclass of its parameters; `draw(law, shape, seed)` gives uint16 [n, L, K];
    `measure(law, drawn)` sets what was asked for beside what came out."""

    law: type
    draw: Callable[[Any, TextShape, int], NDArray[np.uint16]]
    measure: Callable[[Any, Drawn], list[Statistic]]


GENERATORS: Mapping[str, Generator] = {
    "zipf": Generator(Zipf, zipf_experts, zipf_statistics),
    "markov": Generator(Markov, markov_experts, markov_statistics),
    "phases": Generator(Phases, phase_experts, phase_statistics),
    "lru-adversary": Generator(Adversary, adversary_experts, adversary_statistics),
}
