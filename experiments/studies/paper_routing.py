"""Fit of the routing generator to published statistics, by a small search."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from experiments.studies.paper_targets import Statistic
from traces.caches import capacity_of, hit_rates
from traces.locality import distinct_experts
from traces.manifest import ModelInfo
from traces.popularity_caches import frequency_hit_rate, static_hit_rate
from traces.synthetic_routing import RoutingLaw, generate_routing

FITTED_LAYERS = 8  # layers are independent, so a few tell what the law does
START = (1.2, 1.1, -3.7, -1.3)


def reached(experts: NDArray[np.uint16], number: int, statistic: Statistic) -> float:
    """The statistic of generated rows, uint16 [n, L, K]."""
    capacity = capacity_of(statistic.ratio, number)
    match statistic.kind:
        case "reuse":
            later, earlier = experts[1:], experts[:-1]
            return float((later[..., :, None] == earlier[..., None, :]).any(axis=-1).mean())
        case "lru":
            return hit_rates(experts, number, statistic.ratio)[0]
        case "belady":
            return hit_rates(experts, number, statistic.ratio)[1]
        case "lfu":
            return frequency_hit_rate(experts, number, capacity)
        case "static":
            return static_hit_rate(experts, number, capacity)
    raise ValueError(f"unknown statistic {statistic.kind}")


def window_union(experts: NDArray[np.uint16], rows: int) -> float:
    """Mean distinct experts per layer in windows of `rows` rows."""
    begin = np.arange(0, len(experts) - rows + 1, rows)
    return float(distinct_experts(experts[begin[:, None] + np.arange(rows)]).mean())


def fit_law(
    targets: tuple[Statistic, ...], model: ModelInfo, tokens: int, seed: int, steps: int = 120
) -> RoutingLaw:
    """The law whose statistics come nearest in squares, by Nelder and Mead with fixed draws."""
    small = replace(model, layers=min(FITTED_LAYERS, model.layers))

    def distance(point: NDArray[np.float64]) -> float:
        experts = generate_routing(law_at(point), small, tokens, seed).experts
        misses = [reached(experts, small.experts, one) - one.value for one in targets]
        return 1e4 * float(np.square(misses).sum())

    options = {"maxfev": steps, "xatol": 0.01, "fatol": 0.01}
    found = minimize(distance, START, method="Nelder-Mead", options=options)
    return law_at(found.x)


def law_at(point: NDArray[np.float64]) -> RoutingLaw:
    """A law from unbounded numbers, rounded to what is kept in a file."""
    zipf, topic, memory, keep = (float(value) for value in point)
    return RoutingLaw(
        zipf=round(abs(zipf), 4),
        topic=round(abs(topic), 4),
        memory=round(1 - float(np.exp(-abs(memory))), 5),
        keep=round(float(1 / (1 + np.exp(-keep))), 4),
    )
