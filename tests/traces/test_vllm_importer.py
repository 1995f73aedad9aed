"""Responses of vLLM: several texts, cached prefixes, dense layers, and version 0.21."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign_files import (
    GENERATED,
    PROMPT,
    routed,
    take,
    vllm_response,
    write_json,
    write_lines,
)
from numpy.typing import NDArray

from policies.errors import UserError
from traces.importers.routing import Given

TEXT = routed(PROMPT + GENERATED)


def test_a_server_that_lists_dense_layers(tmp_path: Path) -> None:
    wide = np.concatenate([np.zeros_like(TEXT[:-1, :1]), TEXT[:-1]], axis=1)
    trace = take(write_json(tmp_path / "a.json", vllm_response(wide)), tmp_path / "trace")
    np.testing.assert_array_equal(trace.load().experts, TEXT[:-1])
    assert trace.manifest.notes["layers"] == "1 layers without routed experts left out"


def old_response(head: NDArray[Any], rows: NDArray[Any], **more: Any) -> dict[str, Any]:
    """As vLLM 0.21 answers: `head` beside the choices, `rows` of what was generated."""
    response = vllm_response(TEXT[:-1], routed_experts=rows.tolist() if len(rows) else None, **more)
    return response | {"prompt_routed_experts": head.tolist()}


@pytest.mark.parametrize("mark", [0, -1])
def test_a_cached_prefix_of_vllm_is_dropped_with_a_note(mark: int, tmp_path: Path) -> None:
    """Version 0.21 leaves its rows 0; later ones are asked for from a later position on."""
    head = TEXT[:PROMPT].copy()
    head[:2] = mark
    old, new = old_response(head, TEXT[PROMPT:-1]), vllm_response(TEXT[2:-1])
    for number, response in enumerate((old, new)):
        trace = take(write_json(tmp_path / f"{number}.json", response), tmp_path / str(number))
        batch = trace.load()
        np.testing.assert_array_equal(batch.experts, TEXT[PROMPT:-1])
        assert batch.start.tolist() == list(range(PROMPT, PROMPT + GENERATED - 1))
        assert trace.manifest.notes["dropped"].startswith("2 prompt rows")


def test_the_row_of_a_rejected_draft_is_not_the_last_token(tmp_path: Path) -> None:
    """Speculative decoding of vLLM 0.21 lists as many rows as tokens: the last was rejected."""
    source = write_json(tmp_path / "a.json", old_response(TEXT[:PROMPT], TEXT[PROMPT:]))
    np.testing.assert_array_equal(take(source, tmp_path / "trace").load().experts, TEXT[:-1])


def test_a_prompt_of_vllm_021_belongs_to_the_first_text_only(tmp_path: Path) -> None:
    """Two prompts in one call: the response holds the routing of the first."""
    both = old_response(TEXT[:PROMPT], TEXT[PROMPT:-1])
    second = vllm_response(TEXT[:-1], prompt_token_ids=[9, 8, 7, 6, 5])["choices"][0]
    both["choices"].append(second | {"routed_experts": TEXT[PROMPT:-1].tolist()})
    batch = take(write_json(tmp_path / "a.json", both), tmp_path / "trace").load()
    assert batch.request.tolist() == [0] * (PROMPT + GENERATED - 1) + [1] * (GENERATED - 1)
    assert batch.start[-1] == 5 + GENERATED - 2


def test_a_text_of_one_token_has_no_rows_of_its_own(tmp_path: Path) -> None:
    """Its prompt is left out, as a prompt is that nothing follows; the other text stays."""
    short = old_response(TEXT[:PROMPT], TEXT[:0], token_ids=[200])
    lines = [short, old_response(TEXT[:PROMPT], TEXT[PROMPT:-1])]
    trace = take(write_lines(tmp_path / "a.jsonl", lines), tmp_path / "trace")
    np.testing.assert_array_equal(trace.load().experts, TEXT[:-1])
    assert trace.manifest.notes["dropped"].startswith(f"{PROMPT} prompt rows")


def test_a_server_that_names_no_model(tmp_path: Path) -> None:
    """/inference/v1/generate may answer without model and usage: the user names the model."""
    ids = vllm_response(TEXT[:-1])["choices"][0]
    response = {
        "request_id": "r", "model": None, "created": None, "usage": None,
        "prompt_token_ids": ids.pop("prompt_token_ids"), "choices": [ids],
    }  # fmt: skip
    source = write_json(tmp_path / "a.json", response)
    np.testing.assert_array_equal(take(source, tmp_path / "trace").load().experts, TEXT[:-1])
    with pytest.raises(UserError, match="does not name the model, give model="):
        take(source, tmp_path / "other", given=Given())


def test_several_choices_are_several_requests(tmp_path: Path) -> None:
    response = vllm_response(TEXT[:-1])
    other = routed(PROMPT + GENERATED - 1, seed=5)
    response["choices"] += vllm_response(other)["choices"]
    batch = take(write_json(tmp_path / "a.json", response), tmp_path / "trace").load()
    np.testing.assert_array_equal(batch.experts, np.concatenate([TEXT[:-1], other]))
    assert np.unique(batch.request).tolist() == [0, 1]
