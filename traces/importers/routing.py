"""What every importer reads out of a foreign file, and how it becomes a trace of kind text."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError
from traces.manifest import SCHEMA_VERSION, Manifest, ModelInfo, SamplingInfo
from traces.rows import DECODE, PREFILL, UNKNOWN_TOKEN, RowBatch, build_rows

# Bytes of one routed expert as published: gate, up and down matrices. gpt-oss stores 4.25 bits a
# weight (MXFP4) and bf16 biases.
_GPT_OSS_BYTES = 3 * 2880 * 2880 * 17 // 32 + 3 * 2880 * 2
LONGEST_PROMPT = 1 << 15  # rows of a prefill are numbered in int16
EXPERT_BYTES = {
    "openai/gpt-oss-20b": _GPT_OSS_BYTES,
    "openai/gpt-oss-120b": _GPT_OSS_BYTES,
    "deepseek-ai/DeepSeek-V2-Lite-Chat": 3 * 2048 * 1408 * 2,
}


@dataclass(frozen=True)
class Given:
    """What the user says about the model, for files that do not; it wins over the file's words.

    `layers` and `top_k` are those of the model that the user named: the file must have as many.
    """

    name: str | None = None
    experts: int | None = None
    expert_bytes: int | None = None
    layers: int | None = None
    top_k: int | None = None


@dataclass(frozen=True)
class Routing:
    """n rows of text, requests one after the other, each in the order of its positions.

    request, position int [n]: positions of a request count up by one, and its prompt, if recorded
    at all, is recorded from position 0 on; prompt bool [n]; token int [n] or None where unknown;
    experts int [n, L, K]; weights float [n, L, K] or None. `model`, `number` (experts of a layer):
    None where the file does not say.
    """

    request: NDArray[Any]
    position: NDArray[Any]
    prompt: NDArray[np.bool_]
    token: NDArray[Any] | None
    experts: NDArray[Any]
    weights: NDArray[Any] | None = None
    model: str | None = None
    number: int | None = None
    notes: dict[str, str] = field(default_factory=dict)


def manifest_of(routing: Routing, source: Path, format: str, given: Given) -> Manifest:
    """The manifest of the trace; UserError with the key to give for what nobody says."""
    _, layers, top_k = routing.experts.shape
    name = given.name or routing.model
    if name is None:
        raise UserError(f"{source}: the file does not name the model, give model=")
    if given.layers not in (None, layers) or given.top_k not in (None, top_k):
        raise UserError(
            f"{source}: {layers} layers, top-{top_k}, but {name} has {given.layers} MoE layers, "
            f"top-{given.top_k}"
        )
    number = given.experts or routing.number
    if number is None:
        highest = int(routing.experts.max()) + 1
        raise UserError(
            f"{source}: the file does not say how many experts a layer of {name} has "
            f"(at least {highest} occur), give experts="
        )
    size = given.expert_bytes or EXPERT_BYTES.get(name)
    if size is None:
        raise UserError(f"{source}: bytes of an expert of {name} unknown, give expert_bytes=")
    notes = dict(routing.notes)
    if routing.token is None:
        notes["tokens"] = "not in the file: input_token is 0 in every row"
    return Manifest(
        schema_version=SCHEMA_VERSION,
        kind="text",
        workload=source.stem,
        model=ModelInfo(name, layers, number, top_k, size),
        draft=None,
        sampling=SamplingInfo("none", 0.0, 0),
        gamma_max=0,
        recorder=f"import {format}",
        columns=() if routing.weights is None else ("router_weights",),
        notes=notes,
    )


def rows_of(routing: Routing, source: Path) -> RowBatch:
    """The rows of the trace. Experts go in falling order of weight where weights are known."""
    _check(routing, source)
    request, prompt = routing.request, routing.prompt
    token = np.zeros(len(request), np.int64) if routing.token is None else routing.token
    continues = np.append(request[1:] == request[:-1], False) & ~prompt
    known = continues & (routing.token is not None)
    experts, weights = routing.experts, routing.weights
    if weights is not None:
        order = np.argsort(-np.asarray(weights, np.float32), axis=2, kind="stable")
        experts = np.take_along_axis(experts, order, axis=2)
        weights = np.take_along_axis(weights, order, axis=2)
    return build_rows(
        request=request,
        phase=np.where(prompt, PREFILL, DECODE),
        start=np.where(prompt, 0, routing.position),
        row=np.where(prompt, routing.position, 0),
        input_token=token,
        target_choice=np.where(known, np.roll(token, -1), UNKNOWN_TOKEN),
        match=False,
        experts=experts,
        router_weights=weights,
    )


def without_split_prompts(routing: Routing) -> Routing:
    """Requests whose prompt is recorded in part lose it, because a prefill is recorded whole or not
    at all; prompts without a single generated token go too. A note says how many rows."""
    kept = np.ones(len(routing.request), np.bool_)
    for request in np.unique(routing.request):
        own = routing.request == request
        prompt = own & routing.prompt
        if prompt.any() and (routing.position[prompt].min() != 0 or prompt.sum() == own.sum()):
            kept &= ~prompt
    dropped = int((~kept).sum())
    if dropped == 0:
        return routing
    return Routing(
        routing.request[kept],
        routing.position[kept],
        routing.prompt[kept],
        None if routing.token is None else routing.token[kept],
        routing.experts[kept],
        None if routing.weights is None else routing.weights[kept],
        routing.model,
        routing.number,
        routing.notes | {"dropped": f"{dropped} prompt rows of requests not recorded whole"},
    )


def _check(routing: Routing, source: Path) -> None:
    if len(routing.request) == 0:
        raise UserError(f"{source}: no generated token with its experts was found")
    experts = np.asarray(routing.experts)
    if experts.min() < 0:
        row, layer, _ = np.argwhere(experts < 0)[0]
        raise UserError(
            f"{source}: request {routing.request[row]}, position {routing.position[row]}, "
            f"layer {layer}: expert {experts.min()} is no expert; that row was not recorded"
        )
    same = routing.request[1:] == routing.request[:-1]
    steps = np.diff(routing.position)
    if (np.diff(routing.request) < 0).any() or (steps[same] != 1).any():
        raise UserError(
            f"{source}: requests must ascend and positions count by one within a request"
        )
    longest = int(routing.position[routing.prompt].max(initial=-1)) + 1
    if longest > LONGEST_PROMPT:
        raise UserError(
            f"{source}: a prompt of {longest} tokens; a trace holds prompts of up to "
            f"{LONGEST_PROMPT}, leave longer ones out of the file"
        )
    ordered = np.sort(experts, axis=2)
    twice = np.argwhere(ordered[:, :, 1:] == ordered[:, :, :-1])
    if len(twice):
        row, layer, _ = twice[0]
        raise UserError(
            f"{source}: request {routing.request[row]}, position {routing.position[row]}, layer "
            f"{layer}: an expert is listed twice in {experts[row, layer].tolist()}"
        )
