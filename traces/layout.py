"""What rows a trace may hold, in which order: problems found for writer, reader and check.

Requests ascend and are whole. In each, prefill rows come first, at positions 0, 1, ..; then come
decode rows:
dense: each start from the first to the last, each with rows 0..gamma_max;
windowed: each start of the recorded chain with rows 0..gamma, then the start after its commit;
text: each start with row 0 only.
"""

import numpy as np
from numpy.typing import NDArray

from traces.acceptance import leading_matches
from traces.manifest import Manifest
from traces.rows import DECODE, FILLER, PREFILL, UNKNOWN_TOKEN, RowBatch


def request_bounds(request: NDArray[np.int32]) -> list[tuple[int, int, int]]:
    """(request, begin, end) of each run of equal request numbers."""
    if len(request) == 0:
        return []
    edges = np.flatnonzero(np.diff(request)) + 1
    begins, ends = [0, *edges.tolist()], [*edges.tolist(), len(request)]
    return [(int(request[begin]), begin, end) for begin, end in zip(begins, ends, strict=True)]


def value_problems(batch: RowBatch, manifest: Manifest) -> list[str]:
    """Shapes, columns and expert numbers that do not fit the manifest, in any rows."""
    model, problems = manifest.model, []
    shape = batch.experts.shape[1:]
    if shape != (model.layers, model.top_k):
        return [
            f"experts has {shape[0]} layers x {shape[1]}, "
            f"the manifest says {model.layers} x {model.top_k}"
        ]
    for name, present, announced in (
        ("router_weights", batch.router_weights is not None, "router_weights" in manifest.columns),
        ("next_layer", batch.next_layer is not None, manifest.lookahead > 0),
    ):
        if present != announced:
            problems.append(
                f"{name} is {'present' if present else 'absent'}, the manifest says otherwise"
            )
    if len(batch) and batch.experts.max() >= model.experts:
        problems.append(
            f"expert number {batch.experts.max()} in a model of {model.experts} experts"
        )
    if batch.next_layer is not None and not problems:
        problems += _lookahead_problems(batch.next_layer, manifest)
    return problems


def _lookahead_problems(next_layer: NDArray[np.uint16], manifest: Manifest) -> list[str]:
    layers, experts = manifest.model.layers, manifest.model.experts
    if len(next_layer) != manifest.lookahead:
        return [f"next_layer has {len(next_layer)} distances, the manifest {manifest.lookahead}"]
    for distance, values in enumerate(next_layer, start=1):
        inside = max(layers - distance, 0)
        if (values[:, :inside] >= experts).any():
            return [f"next_layer_{distance} has an expert number >= {experts}"]
        if (values[:, inside:] != FILLER).any():
            return [f"next_layer_{distance} has no filler in its last {distance} layers"]
    return []


def layout_problems(batch: RowBatch, manifest: Manifest) -> list[str]:
    """Order, completeness and match flags of a batch of whole requests."""
    problems, bounds = [], request_bounds(batch.request)
    if batch.request.size and (np.diff(batch.request) < 0).any():
        problems.append("request numbers do not ascend")
    for request, begin, end in bounds:
        problem = _request_problem(batch.span(begin, end), manifest)
        if problem:
            problems.append(f"request {request}: {problem}")
    return problems


def _request_problem(rows: RowBatch, manifest: Manifest) -> str | None:
    prefill = int((rows.phase == PREFILL).sum())
    decode = rows.span(prefill, len(rows))
    if (rows.phase[:prefill] != PREFILL).any() or (decode.phase != DECODE).any():
        return "prefill rows (phase 0) must come first, then decode rows (phase 1)"
    if rows.start[:prefill].any() or (rows.row[:prefill] != np.arange(prefill)).any():
        return "prefill rows must have start 0 and rows 0, 1, .. (at most 32768 of them)"
    if (rows.target_choice[:prefill] != UNKNOWN_TOKEN).any() or rows.match[:prefill].any():
        return "prefill rows must have target_choice -1 and match false"
    window = manifest.rows_per_start
    if len(decode) == 0 or len(decode) % window:
        return f"{len(decode)} decode rows, need a positive multiple of gamma_max + 1 = {window}"
    start = decode.start.reshape(-1, window)
    if (start != start[:, :1]).any() or (decode.row.reshape(-1, window) != np.arange(window)).any():
        return f"the decode rows of a start must be rows 0..{window - 1}, side by side"
    if prefill and start[0, 0] != prefill:
        return f"first decode start {start[0, 0]} after {prefill} prefill rows"
    expected = start[:-1, 0] + _advance(decode, manifest)[:-1]
    wrong = np.flatnonzero(start[1:, 0] != expected)
    if len(wrong):
        at = int(wrong[0])
        return f"start {start[at, 0]} is followed by {start[at + 1, 0]}, expected {expected[at]}"
    return _match_problem(decode, window)


def _advance(decode: RowBatch, manifest: Manifest) -> NDArray[np.int64]:
    """Positions from each start to the next recorded one."""
    window = manifest.rows_per_start
    if manifest.kind != "windowed":
        return np.ones(len(decode) // window, np.int64)
    accepted = leading_matches(decode.match.reshape(-1, window))
    known = decode.target_choice.reshape(-1, window)[np.arange(len(accepted)), accepted]
    return accepted + (known != UNKNOWN_TOKEN)


def _match_problem(decode: RowBatch, window: int) -> str | None:
    token, choice = (
        array.reshape(-1, window) for array in (decode.input_token, decode.target_choice)
    )
    match = np.zeros(token.shape, np.bool_)
    match[:, :-1] = token[:, 1:] == choice[:, :-1]
    wrong = np.flatnonzero((match != decode.match.reshape(-1, window)).any(axis=1))
    if len(wrong):
        return f"match flags of start {decode.start[wrong[0] * window]} contradict the tokens"
    return None
