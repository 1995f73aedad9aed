"""Import the JSON of GPT-OSS-MoE-ExpertFingerprinting: one generated text, or a list of them.

Of each, `router_data` is a list of {"token_178": {"layer_0": {"selected_experts": [..],
"selected_probs": [..]}, ..}}, the number being the position in the text; `generated_only` are the
generated tokens as strings. Prompt tokens are not recorded. The summaries beside these files
(`think_expert_analytics`) hold frequencies only and are refused.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError
from traces.importers.json_arrays import integer_array, key_of, number_array
from traces.importers.json_files import mentions, read_json
from traces.importers.routing import Routing

# The files name no model; the two that exist differ in their layers.
MODELS = {24: ("openai/gpt-oss-20b", 32), 36: ("openai/gpt-oss-120b", 128)}


def recognises_fingerprint(source: Path) -> bool:
    """An example or a summary of this project."""
    return any(
        mentions(source, *keys)
        for keys in (
            ("original_prompt", "full_text"),
            ("router_data",),
            ("think_expert_analytics",),
        )
    )


def read_fingerprint(source: Path) -> Routing:
    """Each example of the file as a request."""
    content = read_json(source)
    examples = content if isinstance(content, list) else [content]
    if not examples or not all(isinstance(one, dict) for one in examples):
        raise UserError(f"{source}: expected an object or a list of objects")
    vocabulary: dict[str, int] = {}
    texts = [
        _read_example(example, vocabulary, f"{source}, example {number}")
        for number, example in enumerate(examples)
    ]
    position = np.concatenate([text[0] for text in texts])
    tokens = [text[1] for text in texts]
    experts = _joined([text[2] for text in texts], source)
    weights = _joined([text[3] for text in texts], source)
    model, number = MODELS.get(experts.shape[1], (None, None))
    known = [token for token in tokens if token is not None]
    return Routing(
        request=np.repeat(np.arange(len(texts)), [len(text[0]) for text in texts]),
        position=position,
        prompt=np.zeros(len(position), np.bool_),
        token=np.concatenate(known) if len(known) == len(tokens) else None,
        experts=experts,
        weights=weights,
        model=model,
        number=number,
        notes={
            "phase": "decode; prompt tokens were not recorded",
            "weights": "softmax over the selected experts",
            **({"tokens": "strings, numbered in order of first use"} if known else {}),
        },
    )


def _read_example(
    example: dict[str, Any], vocabulary: dict[str, int], where: str
) -> tuple[NDArray[Any], NDArray[Any] | None, NDArray[Any], NDArray[Any]]:
    if "router_data" not in example and "think_expert_analytics" in example:
        raise UserError(
            f"{where}: a summary; it holds how often each expert was chosen, not which token chose "
            "it. Import the file beside it whose name ends in _examples.json"
        )
    found: dict[int, Any] = {}
    for item in key_of(example, "router_data", where):
        for name, layers in item.items():
            found[_number_in(name, "token_", where)] = layers
    if not found:
        raise UserError(f"{where}: router_data is empty")
    position = np.asarray(sorted(found))
    experts, weights = zip(*(_read_token(found[at], f"{where}, token_{at}") for at in position),
                           strict=True)  # fmt: skip
    strings = example.get("generated_only")
    # The last generated token may be left without a forward of its own.
    token = None
    if isinstance(strings, list) and 0 <= len(strings) - len(position) <= 1:
        numbers = [vocabulary.setdefault(str(one), len(vocabulary)) for one in strings]
        token = np.asarray(numbers[: len(position)])
    return position, token, _joined(experts, where), _joined(weights, where)


def _read_token(layers: dict[str, Any], where: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """(experts [1, L, K], weights likewise) of one token."""
    order = sorted(layers, key=lambda name: _number_in(name, "layer_", where))
    chosen = [key_of(layers[name], "selected_experts", f"{where}, {name}") for name in order]
    shares = [key_of(layers[name], "selected_probs", f"{where}, {name}") for name in order]
    return integer_array([chosen], 3, where), number_array([shares], 3, where)


def _number_in(name: str, prefix: str, where: str) -> int:
    digits = name.removeprefix(prefix)
    if digits == name or not digits.isdigit():
        raise UserError(f"{where}: key {name!r} is not of the form {prefix}<number>")
    return int(digits)


def _joined(arrays: Any, where: object) -> NDArray[Any]:
    shapes = {array.shape[1:] for array in arrays}
    if len(shapes) > 1:
        one, other = sorted(shapes)[:2]
        raise UserError(f"{where}: tokens with {list(one)} and {list(other)} layers x experts")
    return np.concatenate(arrays)
