"""Small files in the formats of other projects, made from one table of routing.

Keys, types and shapes are those of the sources of SGLang 0.5.23 (srt/eplb/expert_distribution.py),
vLLM 0.33.0 (entrypoints, routed_experts_capturer.py), vLLM 0.21.0 and moe-policylang 1.15.0
(integrations/trace_recorder.py).
"""

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from traces.importers import import_trace
from traces.importers.routing import Given
from traces.reader import Trace

LAYERS, EXPERTS, TOP_K = 3, 8, 2
PROMPT, GENERATED = 4, 5
MODEL = "some/moe"
GIVEN = Given(name=MODEL, experts=EXPERTS, expert_bytes=4096)


def routed(rows: int, seed: int = 0, layers: int = LAYERS) -> NDArray[np.int64]:
    """int64 [rows, layers, TOP_K] of distinct experts."""
    generator = np.random.default_rng(seed)
    shape = (rows, layers, EXPERTS)
    drawn = generator.permuted(np.broadcast_to(np.arange(EXPERTS), shape), axis=2)[..., :TOP_K]
    return np.ascontiguousarray(drawn, np.int64)


def take(source: Path, destination: Path, format: str = "auto", given: Given = GIVEN) -> Trace:
    return import_trace(source, destination, format, given)


def write_json(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def write_lines(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def npy_text(array: NDArray[Any]) -> str:
    """As a server sends an array: base64 of an .npy."""
    stream = io.BytesIO()
    np.save(stream, array)
    return base64.b64encode(stream.getvalue()).decode("ascii")


def vllm_response(experts: NDArray[np.int64], **choice: Any) -> dict[str, Any]:
    """A completion of PROMPT and GENERATED tokens; experts [PROMPT + GENERATED - 1, L, K]."""
    return {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 1_780_000_000,
        "model": MODEL,
        "choices": [
            {
                "index": 0,
                "text": "...",
                "token_ids": list(range(200, 200 + GENERATED)),
                "prompt_token_ids": list(range(100, 100 + PROMPT)),
                "finish_reason": "length",
                "routed_experts": npy_text(experts.astype(np.uint8)),
            }
            | choice
        ],
        "usage": {"prompt_tokens": PROMPT, "completion_tokens": GENERATED},
    }


def sglang_pass(
    experts: NDArray[np.int64], positions: list[int], mode: int, lengths: list[int] | None = None
) -> dict[str, Any]:
    """One pass of mode per_token; experts [tokens, L, K]. The recorder has room for k = 8."""
    tokens = len(positions)
    buffer = np.full((experts.shape[1], tokens, 8), -1)
    buffer[:, :, : experts.shape[2]] = experts.transpose(1, 0, 2)
    return {
        "forward_pass_id": 1,
        "rank": 0,
        "gatherer_key": "primary",
        "input_ids": [1000 + position for position in positions],
        "positions": positions,
        "extend_seq_lens": lengths,
        "forward_mode": mode,
        "topk_ids_of_layer": buffer.tolist(),
        "misc_objects": [],
        "global_physical_count": counts(buffer).tolist(),
    }


def counts(chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64 [layers, EXPERTS]: tokens of each expert; chosen [layers, tokens, k], -1 for none."""
    highest = max(EXPERTS, int(chosen.max()) + 1)
    return np.stack([np.bincount(one[one >= 0], minlength=highest) for one in chosen])


def sglang_dump(records: list[dict[str, Any]], layers: int = LAYERS) -> dict[str, Any]:
    return {
        "records": records,
        "last_physical_to_logical_map": [list(range(EXPERTS))] * layers,
    }


def one_text(experts: NDArray[np.int64], prompt: int = PROMPT) -> list[dict[str, Any]]:
    """The passes of one request alone on the server."""
    passes = [sglang_pass(experts[:prompt], list(range(prompt)), 1, [prompt])]
    for at in range(prompt, len(experts)):
        passes.append(sglang_pass(experts[at : at + 1], [at], 2))
    return passes


def policylang_columns(experts: NDArray[np.int64], prompt: int = PROMPT) -> dict[str, list[Any]]:
    rows = [(t, layer) for t in range(len(experts)) for layer in range(experts.shape[1])]
    return {
        "prompt_id": [0] * len(rows),
        "token_idx": [t for t, _ in rows],
        "layer_idx": [layer + 1 for _, layer in rows],  # the model's layer 0 is dense
        "selected_experts": [experts[t, layer].tolist() for t, layer in rows],
        "router_scores": [[0.75, 0.25] for _ in rows],
        "token_id": [500 + t for t, _ in rows],
        "phase": ["prefill" if t < prompt else "decode" for t, _ in rows],
    }


def policylang_lines(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    short = dict(zip(columns, ("p", "t", "l", "e", "s", "ti", "ph"), strict=True))
    count = len(columns["prompt_id"])
    header = {
        "model_name": MODEL,
        "num_layers": LAYERS + 1,
        "num_experts": EXPERTS,
        "top_k": TOP_K,
        "num_entries": count,
        "records_full_softmax": False,
    }
    entries = [{short[name]: columns[name][at] for name in columns} for at in range(count)]
    return [header, *entries]


def policylang_parquet(path: Path, columns: dict[str, list[Any]]) -> Path:
    pd.DataFrame(columns).to_parquet(path, compression="zstd")
    return path


def fingerprint(experts: NDArray[np.int64], first: int = 178) -> dict[str, Any]:
    """An example file; the last generated token has no forward."""
    shares = [0.625, 0.375]
    return {
        "row_index": 1,
        "dataset": "gpqa_diamond",
        "original_prompt": "...",
        "full_text": ["<|start|>"],
        "generated_only": [*("abab" * len(experts))[: len(experts)], "<|return|>"],
        "router_data": [
            {
                f"token_{first + at}": {
                    f"layer_{layer}": {"selected_experts": row.tolist(), "selected_probs": shares}
                    for layer, row in enumerate(token)
                }
            }
            for at, token in enumerate(experts)
        ],
    }
