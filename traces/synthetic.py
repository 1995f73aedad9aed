"""Small seeded traces for tests. Their statistics are chosen: no result may rest on them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traces.acceptance import leading_matches
from traces.manifest import (
    NEXT_LAYER_COLUMNS,
    SCHEMA_VERSION,
    Kind,
    Manifest,
    ModelInfo,
    SamplingInfo,
)
from traces.rows import (
    DECODE,
    FILLER,
    PREFILL,
    UNKNOWN_TOKEN,
    RowBatch,
    build_rows,
    concatenate_rows,
)


@dataclass(frozen=True)
class SyntheticShape:
    """Size and statistics of a synthetic trace; `reuse`: chance that an expert stays a row on."""

    layers: int = 4
    experts: int = 16
    top_k: int = 2
    requests: int = 3
    prompt_tokens: int = 5
    tokens: int = 24
    vocabulary: int = 50
    reuse: float = 0.4
    acceptance: float = 0.7
    lookahead: int = 0
    weights: bool = False


def synthetic_manifest(shape: SyntheticShape, kind: Kind, gamma_max: int = 0) -> Manifest:
    """The manifest that fits rows made with `shape`."""
    columns = NEXT_LAYER_COLUMNS[: shape.lookahead]
    return Manifest(
        schema_version=SCHEMA_VERSION,
        kind=kind,
        workload="synthetic",
        model=ModelInfo("synthetic", shape.layers, shape.experts, shape.top_k, 1 << 20),
        draft=None if kind == "text" else "synthetic-draft",
        sampling=SamplingInfo("none", 0.0, 0),
        gamma_max=gamma_max,
        recorder="synthetic",
        columns=("router_weights", *columns) if shape.weights else columns,
    )


def markov_text(shape: SyntheticShape, seed: int) -> RowBatch:
    """Rows of a text trace whose experts stay from row to row with probability `reuse`."""
    generator = np.random.default_rng(seed)
    return concatenate_rows(
        [_with_gamma(shape, generator, request, gamma=0) for request in range(shape.requests)]
    )


def random_dense(shape: SyntheticShape, gamma_max: int, seed: int) -> RowBatch:
    """Rows of a dense trace: row j of a start repeats row 0 of start t + j while drafts match."""
    generator = np.random.default_rng(seed)
    return concatenate_rows(
        [_with_gamma(shape, generator, request, gamma_max) for request in range(shape.requests)]
    )


def shuffle(experts: NDArray[np.uint16], seed: int) -> NDArray[np.uint16]:
    """The same rows in random order: popularity stays, locality goes. uint16 [n, L, K]."""
    shuffled: NDArray[np.uint16] = np.random.default_rng(seed).permutation(experts, axis=0)
    return shuffled


def _with_gamma(
    shape: SyntheticShape, generator: np.random.Generator, request: int, gamma: int
) -> RowBatch:
    """Prefill and decode rows of one request."""
    prompt = shape.prompt_tokens
    length = prompt + shape.tokens
    # The true text goes gamma rows past the end, as a recorder proposes past the end of a text.
    token = generator.integers(0, shape.vocabulary, length + gamma + 1)
    truth = _experts(shape, generator, length + gamma)
    tokens, choices, rows = [token[:prompt]], [np.full(prompt, UNKNOWN_TOKEN)], [truth[:prompt]]
    for start in range(prompt, length):
        accepted = int(leading_matches(generator.random(gamma) < shape.acceptance))
        kept = slice(start, start + accepted + 1)
        wrong = gamma - accepted
        strays = generator.integers(0, shape.vocabulary, wrong)
        if wrong and strays[0] == token[start + accepted + 1]:
            strays[0] = (strays[0] + 1) % shape.vocabulary
        tokens.append(np.concatenate([token[kept], strays]))
        continued = generator.integers(0, shape.vocabulary, wrong)
        choices.append(np.concatenate([token[kept.start + 1 : kept.stop + 1], continued]))
        rows.append(np.concatenate([truth[kept], _experts(shape, generator, wrong)]))
    return _assemble(shape, generator, request, gamma, tokens, choices, rows)


def _assemble(
    shape: SyntheticShape,
    generator: np.random.Generator,
    request: int,
    gamma: int,
    tokens: list[NDArray[np.int64]],
    choices: list[NDArray[np.int64]],
    rows: list[NDArray[np.uint16]],
) -> RowBatch:
    prompt, window = shape.prompt_tokens, gamma + 1
    input_token, target_choice = np.concatenate(tokens), np.concatenate(choices)
    starts = np.repeat(np.arange(prompt, prompt + shape.tokens), window)
    row = np.concatenate([np.arange(prompt), np.tile(np.arange(window), shape.tokens)])
    match = np.zeros(len(row), np.bool_)
    match[:-1] = (row[1:] > 0) & (input_token[1:] == target_choice[:-1])
    match[:prompt] = False
    experts = np.concatenate(rows)
    weights = np.sort(generator.random(experts.shape), axis=2)[:, :, ::-1]
    return build_rows(
        request=request,
        phase=np.where(np.arange(len(row)) < prompt, PREFILL, DECODE),
        start=np.concatenate([np.zeros(prompt, np.int64), starts]),
        row=row,
        input_token=input_token,
        target_choice=target_choice,
        match=match,
        experts=experts,
        router_weights=weights if shape.weights else None,
        next_layer=_next_layer(shape, experts) if shape.lookahead else None,
    )


def _experts(
    shape: SyntheticShape, generator: np.random.Generator, rows: int
) -> NDArray[np.uint16]:
    """uint16 [rows, L, K] without duplicates in a row and layer; reused experts come first."""
    result = np.zeros((rows, shape.layers, shape.top_k), np.uint16)
    previous = np.zeros((shape.layers, shape.experts))
    for index in range(rows):
        # A kept expert of the row before gets a score above every fresh one.
        kept = previous * (generator.random(previous.shape) < shape.reuse)
        score = kept + generator.random(previous.shape)
        chosen = np.argsort(-score, axis=1)[:, : shape.top_k]
        result[index] = chosen
        previous = np.zeros_like(previous)
        np.put_along_axis(previous, chosen, 1.0, axis=1)
    return result


def _next_layer(shape: SyntheticShape, experts: NDArray[np.uint16]) -> NDArray[np.uint16]:
    """Perfect predictions: uint16 [H, n, L, K], the experts of layer l + h stored at layer l."""
    predicted = np.full((shape.lookahead, *experts.shape), FILLER, np.uint16)
    for distance in range(1, min(shape.lookahead, shape.layers - 1) + 1):
        predicted[distance - 1, :, : shape.layers - distance] = experts[:, distance:]
    return predicted
