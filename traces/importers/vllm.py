"""Import responses of a vLLM server with --enable-return-routed-experts: one JSON object, a list,
or one object a line; completions or chat completions.

A choice's `routed_experts` is either a base64 string, an .npy of [prompt + generated - 1, layers,
top-k] (the last token has no forward), or, in version 0.21, nested lists [generated, layers, top-k]
beside the response's `prompt_routed_experts`. The number of prompt tokens comes from
`prompt_token_ids` or `usage`; tokens are known where return_token_ids was asked for.
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
    models = {str(key_of(response, "model", str(source))) for response in responses}
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
            model=models.pop(),
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
    if value is None:
        raise UserError(
            f"{where}: no routed_experts; start the server with --enable-return-routed-experts "
            "(a request that was preempted has none either)"
        )
    prompt_ids = choice.get("prompt_token_ids") or response.get("prompt_token_ids")
    prompt = len(prompt_ids) if prompt_ids else _usage(response, "prompt_tokens", where)
    ids = choice.get("token_ids")
    if isinstance(value, str):
        experts = _decoded(value, where)
        alone = len(response["choices"]) == 1
        total = len(ids) if ids else _usage(response, "completion_tokens", where) if alone else None
        first = 0 if total is None else prompt + total - 1 - len(experts)
        if first < 0:
            raise UserError(
                f"{where}: {len(experts)} rows of routed_experts for {prompt} prompt and {total} "
                "generated tokens, expected one less than tokens"
            )
    else:
        experts = integer_array(value, 3, f"{where}: routed_experts")
        head = integer_array(
            key_of(response, "prompt_routed_experts", where), 3, f"{where}: prompt_routed_experts"
        )
        # A cached prefix is marked by -1.
        first = int((head < 0).any(axis=(1, 2)).sum())
        experts = _joined([head[first:], experts], where)
        if len(head) != prompt:
            raise UserError(
                f"{where}: {len(head)} rows of prompt_routed_experts, {prompt} prompt tokens"
            )
    inside = np.arange(first, first + len(experts)) < prompt
    tokens = None
    if prompt_ids and ids and first + len(experts) <= prompt + len(ids):
        tokens = integer_array([*prompt_ids, *ids], 1, f"{where}: token_ids")
        tokens = tokens[first : first + len(experts)]
    return first, experts, inside, tokens


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
    arrays = [array for array in arrays if len(array)]
    shapes = sorted({array.shape[1:] for array in arrays})
    if len(shapes) > 1:
        raise UserError(
            f"{where}: rows of {list(shapes[0])} and of {list(shapes[1])} layers x experts"
        )
    return np.concatenate(arrays)
