"""Import responses of a vLLM server with --enable-return-routed-experts: one JSON object, a list,
or one object a line; completions, chat completions or /inference/v1/generate.

A choice's `routed_experts` is a base64 string, an .npy of [prompt + generated - 1, all layers,
top-k] in uint8 or uint16 (the last token has no forward; routed_experts_prompt_start leaves rows
out in front). In version 0.21 it is nested lists [generated or one less, MoE layers, top-k] beside
the response's `prompt_routed_experts`, of its first prompt, where rows of a cached prefix are 0.
The number of prompt tokens comes from `prompt_token_ids` or `usage`; tokens are known where
return_token_ids was asked for. Checked against the sources of vLLM 0.33.0 and 0.21.0.
"""

import base64
import binascii
import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError
from traces.importers.json_arrays import integer_array, key_of
from traces.importers.json_files import json_lines, mentions, read_json
from traces.importers.routing import Routing, without_split_prompts


def recognises_vllm(source: Path) -> bool:
    """Responses name the model and what they are before they list anything."""
    return mentions(source, "model", "choices")


def read_vllm(source: Path) -> Routing:
    """Each choice of each response as a request."""
    responses = _responses(source)
    texts = [
        _read_choice(response, choice, f"{source}, response {number}, choice {index}")
        for number, response in enumerate(responses)
        for index, choice in enumerate(key_of(response, "choices", f"{source}, response {number}"))
    ]
    if not texts:
        raise UserError(f"{source}: no choices")
    models = {str(name) for response in responses if (name := response.get("model"))}
    if len(models) > 1:
        raise UserError(f"{source}: responses of several models: {', '.join(sorted(models))}")
    experts = _joined([text[1] for text in texts], source)
    experts, dense = _without_dense_layers(experts, source)
    tokens = [text[3] for text in texts if text[3] is not None]
    lengths = [len(text[1]) for text in texts]
    return without_split_prompts(
        Routing(
            request=np.repeat(np.arange(len(texts)), lengths),
            position=np.concatenate([text[0] + np.arange(len(text[1])) for text in texts]),
            prompt=np.concatenate([text[2] for text in texts]),
            token=np.concatenate(tokens) if len(tokens) == len(texts) else None,
            experts=experts,
            model=models.pop() if models else None,
            notes={
                "order": "experts of a token in the order of the server",
                **({"layers": f"{dense} layers without routed experts left out"} if dense else {}),
            },
        )
    )


Text = tuple[int, NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64] | None]


def _read_choice(response: dict[str, Any], choice: dict[str, Any], where: str) -> Text:
    """(first position, experts [n, L, K], prompt [n], tokens [n] or None)."""
    value = choice.get("routed_experts")
    if value is None and response.get("prompt_routed_experts") is None:
        raise UserError(
            f"{where}: no routed_experts; start the server with --enable-return-routed-experts "
            "(a request that was preempted has none either)"
        )
    prompt_ids = choice.get("prompt_token_ids") or response.get("prompt_token_ids")
    prompt = len(prompt_ids) if prompt_ids else _usage(response, "prompt_tokens", where)
    ids = choice.get("token_ids")
    if not ids and len(response["choices"]) > 1:
        raise UserError(
            f"{where}: one of several, and nothing says how long it is; ask for return_token_ids"
        )
    generated = len(ids) if ids else _usage(response, "completion_tokens", where)
    if isinstance(value, str):
        experts = _decoded(value, where)
        first = prompt + generated - 1 - len(experts)
        if first < 0:
            raise UserError(
                f"{where}: {len(experts)} rows of routed_experts for {prompt} prompt and "
                f"{generated} generated tokens, expected one less than tokens"
            )
    else:
        first, experts = _from_lists(response, choice, prompt, generated, where)
    inside = np.arange(first, first + len(experts)) < prompt
    tokens = None
    if prompt_ids and ids:
        tokens = integer_array([*prompt_ids, *ids], 1, f"{where}: token_ids")
        tokens = tokens[first : first + len(experts)]
    return first, experts, inside, tokens


def _from_lists(
    response: dict[str, Any], choice: dict[str, Any], prompt: int, generated: int, where: str
) -> tuple[int, NDArray[np.int64]]:
    """(first position, experts) of version 0.21."""
    rows = choice.get("routed_experts")  # null beside a prompt: the only token was the last
    experts = None if rows is None else integer_array(rows, 3, f"{where}: routed_experts")
    head = integer_array(
        key_of(response, "prompt_routed_experts", where), 3, f"{where}: prompt_routed_experts"
    )
    shared = response["choices"][0].get("prompt_token_ids") == choice.get("prompt_token_ids")
    if shared and len(head) != prompt:
        raise UserError(
            f"{where}: {len(head)} rows of prompt_routed_experts, {prompt} prompt tokens"
        )
    first = _unrecorded(head, where) if shared else prompt
    if experts is None:
        return first, head[first:]
    # A row for the last token is that of a rejected draft.
    return first, _joined([head[first:], experts[: generated - 1]], where)


def _unrecorded(head: NDArray[np.int64], where: str) -> int:
    """Rows in front that were not computed but found in the cache: all 0, or -1."""
    top_k = head.shape[2]
    missing = (head < 0).any(axis=(1, 2)) | (head == 0).all(axis=(1, 2))
    if top_k == 1 and missing[0]:
        raise UserError(
            f"{where}: the prompt begins with expert 0 in all layers, which is also how a cached "
            "prefix looks; start the server with --no-enable-prefix-caching"
        )
    return len(head) if missing.all() else int(missing.argmin())


def _decoded(text: str, where: str) -> NDArray[np.int64]:
    try:
        array = np.load(io.BytesIO(base64.b64decode(text, validate=True)), allow_pickle=False)
    except (binascii.Error, ValueError, EOFError, OSError) as error:
        raise UserError(f"{where}: routed_experts is no base64 of an .npy ({error})") from error
    return integer_array(array, 3, f"{where}: routed_experts")


def _without_dense_layers(
    experts: NDArray[np.int64], where: object
) -> tuple[NDArray[np.int64], int]:
    """(experts, number of layers left out): servers count layers without a router too and leave
    them 0, which no router of more than one expert can choose."""
    if experts.shape[2] == 1:
        return experts, 0
    routed = (experts != experts[:, :, :1]).any(axis=(0, 2))
    if not routed.any():
        raise UserError(f"{where}: every row lists one expert {experts.shape[2]} times: no routing")
    return experts[:, routed], int((~routed).sum())


def _responses(source: Path) -> list[dict[str, Any]]:
    if source.suffix == ".jsonl":
        return [response for _, response in json_lines(source)]
    content = read_json(source)
    responses = content if isinstance(content, list) else [content]
    if not all(isinstance(one, dict) for one in responses):
        raise UserError(f"{source}: expected responses, that is objects")
    return responses


def _usage(response: dict[str, Any], key: str, where: str) -> int:
    usage = key_of(response, "usage", where)
    return int(key_of(usage, key, f"{where}: usage"))


def _joined(arrays: list[NDArray[np.int64]], where: object) -> NDArray[np.int64]:
    arrays = [array for array in arrays if len(array)] or arrays[:1]
    shapes = sorted({array.shape[1:] for array in arrays})
    if len(shapes) > 1:
        raise UserError(
            f"{where}: rows of {list(shapes[0])} and of {list(shapes[1])} layers x experts"
        )
    return np.concatenate(arrays)
