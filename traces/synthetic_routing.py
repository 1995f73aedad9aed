"""Routing generated from published statistics, for models whose traces are not public.

The law of one layer: expert popularity follows Zipf, a slowly changing topic raises some experts
and lowers others, and each expert of the row before stays with a fixed probability. Layers are
independent, which real ones are not. A study that uses this prints the statistics reached beside
the published ones.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traces.manifest import NEXT_LAYER_COLUMNS, SCHEMA_VERSION, Manifest, ModelInfo, SamplingInfo
from traces.rows import DECODE, FILLER, UNKNOWN_TOKEN, RowBatch, build_rows

KEPT = 1000.0  # lifts the score of a kept expert above that of every newcomer


@dataclass(frozen=True)
class RoutingLaw:
    """`zipf`: exponent of popularity; `topic`: standard deviation of the topic's log weights;
    `memory`: their correlation from one token to the next; `keep`: chance that an expert of the row
    before is chosen again for that reason alone."""

    zipf: float
    topic: float
    memory: float
    keep: float


@dataclass(frozen=True)
class Routed:
    """experts uint16 [tokens, layers, top_k], by falling weight; weights float16 likewise."""

    experts: NDArray[np.uint16]
    weights: NDArray[np.float16]


def generate_routing(law: RoutingLaw, model: ModelInfo, tokens: int, seed: int) -> Routed:
    """`tokens` rows, one after the other."""
    generator = np.random.default_rng(seed)
    shape, k = (model.layers, model.experts), model.top_k
    rank = generator.permuted(np.tile(np.arange(1, model.experts + 1), (model.layers, 1)), axis=1)
    popularity = -law.zipf * np.log(rank)
    topic = law.topic * generator.standard_normal(shape)
    fresh = law.topic * np.sqrt(1 - law.memory**2)
    previous = np.zeros(shape, np.bool_)
    experts = np.empty((tokens, model.layers, k), np.uint16)
    weights = np.empty((tokens, model.layers, k), np.float16)
    for token in range(tokens):
        topic = law.memory * topic + fresh * generator.standard_normal(shape)
        score = popularity + topic + generator.gumbel(size=shape)
        kept = previous & (generator.random(shape) < law.keep)
        chosen = np.argpartition(-(score + KEPT * kept), k - 1, axis=1)[:, :k]
        chosen_score = np.take_along_axis(score, chosen, axis=1)
        order = np.argsort(-chosen_score, axis=1, kind="stable")
        chosen = np.take_along_axis(chosen, order, axis=1)
        mass = np.exp(np.take_along_axis(chosen_score, order, axis=1) - chosen_score.max())
        experts[token], weights[token] = chosen, mass / mass.sum(axis=1, keepdims=True)
        previous[:] = False
        np.put_along_axis(previous, chosen, True, axis=1)
    return Routed(experts, weights)


def predict_next_layers(
    experts: NDArray[np.uint16], number: int, accuracy: float, seed: int
) -> NDArray[np.uint16]:
    """uint16 [3, n, L, K]: what the routers of the next three layers would say, each expert right
    with probability `accuracy`, otherwise any expert of that layer."""
    generator = np.random.default_rng(seed)
    horizon, layers = len(NEXT_LAYER_COLUMNS), experts.shape[1]
    predicted = np.full((horizon, *experts.shape), FILLER, np.uint16)
    for distance in range(1, min(horizon, layers - 1) + 1):
        truth = experts[:, distance:]
        wrong = generator.random(truth.shape) >= accuracy
        guess = generator.integers(0, number, truth.shape).astype(np.uint16)
        predicted[distance - 1, :, : layers - distance] = np.where(wrong, guess, truth)
    return predicted


def text_of(
    routed: Routed, model: ModelInfo, requests: int, first: int, accuracy: float, seed: int
) -> tuple[Manifest, RowBatch]:
    """A text trace of `requests` equally long pieces that all begin at position `first`."""
    tokens = len(routed.experts) // requests
    count = tokens * requests
    experts = routed.experts[:count]
    number = np.repeat(np.arange(requests), tokens)
    manifest = Manifest(
        schema_version=SCHEMA_VERSION,
        kind="text",
        workload="generated",
        model=model,
        draft=None,
        sampling=SamplingInfo("none", 0.0, seed),
        gamma_max=0,
        recorder="generated from published statistics",
        columns=("router_weights", *NEXT_LAYER_COLUMNS),
    )
    rows = build_rows(
        request=number,
        phase=DECODE,
        start=first + np.tile(np.arange(tokens), requests),
        row=0,
        input_token=0,
        target_choice=UNKNOWN_TOKEN,
        match=False,
        experts=experts,
        router_weights=routed.weights[:count],
        next_layer=predict_next_layers(experts, model.experts, accuracy, seed),
    )
    return manifest, rows
