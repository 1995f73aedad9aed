"""Every format: what is missing or wrong is one clear line, and nothing is left behind."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign_files import (
    GENERATED,
    PROMPT,
    fingerprint,
    one_text,
    policylang_columns,
    policylang_lines,
    policylang_parquet,
    routed,
    sglang_dump,
    sglang_pass,
    take,
    vllm_response,
    write_json,
    write_lines,
)

from policies.errors import UserError
from traces.importers import IMPORTERS

TEXT = routed(PROMPT + GENERATED)
CSV = "request,position,layer,experts\n"
Maker = Callable[[Path], Path]


def text_file(name: str, content: str) -> Maker:
    def make(folder: Path) -> Path:
        (folder / name).write_text(content, encoding="utf-8")
        return folder / name

    return make


def json_file(content: Any) -> Maker:
    return lambda folder: write_json(folder / "file.json", content)


def lines_file(lines: list[Any]) -> Maker:
    return lambda folder: write_lines(folder / "file.jsonl", lines)


def parquet_file(change: Callable[[dict[str, list[Any]]], None]) -> Maker:
    columns = policylang_columns(TEXT)
    change(columns)
    return lambda folder: policylang_parquet(folder / "file.parquet", columns)


def sglang_with(**changes: Any) -> Maker:
    records = one_text(TEXT)
    records[1] = {key: value for key, value in (records[1] | changes).items() if value != "gone"}
    return json_file(sglang_dump(records))


def response(**choice: Any) -> Maker:
    return json_file(vllm_response(TEXT[:-1], **choice))


def example_with(change: Callable[[dict[str, Any]], None]) -> Maker:
    content = fingerprint(routed(3, layers=24))
    change(content)
    return json_file(content)


TOKEN = {"request": 0, "position": 0, "experts": [[0, 1]]}
PASS_COUNTS = {"forward_pass_id": 1, "rank": 0, "global_physical_count": [[1, 2]]}

REFUSED: dict[str, tuple[str, Maker, str]] = {
    "sglang pt": ("auto", text_file("a.pt", "PK"), r"is pickle.*convert .*weights_only=True"),
    "sglang totals": (
        "auto", json_file({"rank": 0, "logical_count": [[[1, 2]]]}), "counts of experts.*per_token",
    ),
    "sglang per pass": (
        "auto", json_file({"records": [PASS_COUNTS]}), "record 0: .*per_pass.*per_token",
    ),
    "sglang verify pass": ("auto", sglang_with(forward_mode=5), "record 1: forward_mode 5"),
    "sglang no positions": ("auto", sglang_with(positions="gone"), "key 'positions' is missing"),
    "sglang lengths": ("auto", sglang_with(positions=[1, 2]), "1 input_ids, 2 positions and 1"),
    "sglang empty": ("sglang", json_file({"records": []}), "no forward pass with tokens"),
    "sglang nothing routed": (
        "auto", json_file(sglang_dump(one_text(np.full_like(TEXT, -1)))), "nothing was routed",
    ),
    "sglang hole": (
        "auto",
        json_file(sglang_dump(one_text(np.where(np.arange(9)[:, None, None] == 5, -1, TEXT)))),
        "request 0, position 5, layer 0: expert -1 is no expert",
    ),
    "sglang fused shared experts": (
        "auto",
        json_file(sglang_dump(one_text(np.concatenate([TEXT, TEXT[..., :1] * 0 + 8], axis=2)))),
        "expert 8 of 8 in .*--disable-shared-experts-fusion",
    ),
    "sglang two alike": (
        "auto",
        json_file(sglang_dump([
            sglang_pass(np.concatenate([TEXT[:2], TEXT[:2]]), [0, 1, 0, 1], 1, [2, 2]),
            sglang_pass(TEXT[2:4], [2, 2], 2),
        ])),
        "two requests stand at position 1.*max-running-requests 1",
    ),
    "sglang map": (
        "auto",
        json_file(sglang_dump(one_text(TEXT)) | {"last_physical_to_logical_map": [[0, 1]]}),
        r"last_physical_to_logical_map is \[1, 2\]",
    ),
    "vllm none": ("auto", response(routed_experts=None), "--enable-return-routed-experts"),
    "vllm plain response": (
        "auto",
        json_file({"model": "m", "choices": [{"text": "x" * 70_000}]}),
        "response 0, choice 0: no routed_experts",
    ),
    "vllm not base64": ("auto", response(routed_experts="!"), "no base64 of an .npy"),
    "vllm too many rows": ("auto", response(token_ids=[1]), "8 rows of routed_experts for 4"),
    "vllm no usage": (
        "auto",
        json_file(vllm_response(TEXT[:-1], prompt_token_ids=None) | {"usage": None}),
        "key 'usage' is missing",
    ),
    "vllm no prompt part": (
        "auto", response(routed_experts=TEXT[PROMPT:].tolist()), "'prompt_routed_experts'",
    ),
    "vllm ragged": (
        "auto", response(routed_experts=[[[1, 2], [3]]]), "lists have unequal lengths",
    ),
    "vllm several without ids": (
        "auto",
        json_file(vllm_response(TEXT[:-1]) | {"choices": vllm_response(TEXT[:-1], token_ids=None)[
            "choices"] * 2}),
        "choice 0: one of several.*return_token_ids",
    ),
    "vllm top-1 cached": (
        "auto",
        json_file(vllm_response(TEXT[:-1], routed_experts=TEXT[PROMPT:-1, :, :1].tolist())
                  | {"prompt_routed_experts": np.zeros_like(TEXT[:PROMPT, :, :1]).tolist()}),
        "also how a cached prefix looks; .*--no-enable-prefix-caching",
    ),
    "vllm zeros": (
        "auto", json_file(vllm_response(np.zeros_like(TEXT[:-1]))), "no routing",
    ),
    "vllm prompt only": (
        "auto", json_file(vllm_response(TEXT[:PROMPT], token_ids=[7])), "no generated token",
    ),
    "policylang column": (
        "auto", parquet_file(lambda c: c.pop("selected_experts")),
        "column 'selected_experts' is missing; found prompt_id",
    ),
    "policylang layer gone": (
        "auto",
        lines_file([policylang_lines(policylang_columns(TEXT))[0] | {"num_entries": 26},
                    *policylang_lines(policylang_columns(TEXT))[2:]]),
        "request 0, position 0: layer 1 is missing .1 such",
    ),
    "policylang cut off": (
        "auto", lines_file(policylang_lines(policylang_columns(TEXT))[:9]), "8 entries.* 27; .*cut",
    ),
    "policylang phase": (
        "auto", parquet_file(lambda c: c.update(phase=["draft"] * 27)), "phase 'draft', expected",
    ),
    "policylang other k": (
        "auto",
        parquet_file(lambda c: c["selected_experts"].__setitem__(4, [1])),
        "experts has 1 values, 2 in the first line",
    ),
    "policylang no parquet": ("moe-policylang", text_file("a.parquet", "PAR1"), "not a readable"),
    "fingerprint summary": (
        "auto", json_file({"sample_count": 1, "think_expert_analytics": {}}),
        "a summary; .*_examples.json",
    ),
    "fingerprint no data": (
        "auto", example_with(lambda c: c.pop("router_data")), "key 'router_data' is missing",
    ),
    "fingerprint layer": (
        "auto",
        example_with(lambda c: c["router_data"][1]["token_179"].pop("layer_3")),
        r"tokens with \[23, 2\] and \[24, 2\]",
    ),
    "fingerprint names": (
        "auto",
        example_with(lambda c: c["router_data"].append({"tok": {}})), "of the form token_<number>",
    ),
    "fingerprint hole": (
        "auto", example_with(lambda c: c["router_data"].pop(1)), "positions count by one",
    ),
    "csv column": ("csv", text_file("a.csv", "request,position,experts\n"), "'layer' is missing"),
    "csv numbers": ("auto", text_file("a.csv", CSV + "0,0,0,1;2\n"), "line 2: experts is '1;2'"),
    "csv empty": ("auto", text_file("a.csv", CSV + "0,0,0,1 2\n0,1,,1 2\n"), "line 3: layer is"),
    "csv twice": ("auto", text_file("a.csv", CSV + "0,0,0,1 2\n" * 2), "layer 0 occurs 2 times"),
    "csv expert twice": ("auto", text_file("a.csv", CSV + "0,0,0,1 1\n"), "listed twice in .1, 1."),
    "csv experts nowhere": ("auto", text_file("a.csv", CSV + '0,0,0," "\n'), "experts is empty"),
    "csv weights": (
        "auto",
        text_file("a.csv", CSV.strip() + ",weights\n0,0,0,1 2,0.5\n"),
        "experts has 2 numbers, weights 1",
    ),
    "csv other k": (
        "auto",
        text_file("a.csv", CSV + "0,0,0,1 2\n0,1,0,1\n"),
        "line 3: experts has 1 values, 2 in the first line",
    ),
    "csv more fields": (
        "auto", text_file("a.csv", CSV + "0,0,0,1 2,7\n"), "more fields than the header names",
    ),
    "csv columns": (
        "auto", text_file("a.csv", CSV + "0,0,0,1 2\n0,1,0,1 2,7,7\n"), "not a readable csv file",
    ),
    "csv no lines": ("auto", text_file("a.csv", CSV), "no lines"),
    "csv range": ("auto", text_file("a.csv", CSV + "0,0,0,1 9\n"), "expert number 9 in a model"),
    "csv gap": (
        "auto", text_file("a.csv", CSV + "0,0,0,1 2\n0,2,0,1 2\n"), "positions count by one",
    ),
    "jsonl line": ("auto", text_file("a.jsonl", json.dumps(TOKEN) + "\n{"), "line 2: not valid"),
    "jsonl key": (
        "auto", lines_file([TOKEN, {"request": 0, "position": 1}]), "line 2: key 'experts' is",
    ),
    "jsonl text": ("auto", lines_file([TOKEN | {"experts": [["a", "b"]]}]), "whole numbers"),
    "jsonl shape": (
        "auto", lines_file([TOKEN, {"request": 0, "position": 1, "experts": [[1]]}]), "before",
    ),
    "cut JSON": ("vllm", text_file("a.json", '{"choices": ['), "not valid JSON.*cut off"),
    "foreign": ("auto", text_file("a.json", '{"some": "thing"}'), "not recognised.*format="),
    "binary": ("auto", text_file("a.bin", "\x00\x01"), "not recognised.*known formats: csv"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_its_reason_and_nothing_written(name: str, tmp_path: Path) -> None:
    format, make, message = REFUSED[name]
    source = make(tmp_path)
    with pytest.raises(UserError, match=message) as refusal:
        take(source, tmp_path / "trace", format)
    assert str(source) in str(refusal.value) and "\n" not in str(refusal.value)
    assert not (tmp_path / "trace").exists()


def test_every_format_is_refused_something() -> None:
    assert {name.split()[0] for name in REFUSED} >= {"sglang", "vllm", "csv", "jsonl"}
    assert sorted(IMPORTERS) == [
        "csv", "gpt-oss-fingerprint", "jsonl", "moe-policylang", "npz", "sglang", "vllm",
    ]  # fmt: skip


def test_a_prompt_that_is_too_long(tmp_path: Path) -> None:
    """One more than a trace can number."""
    experts = np.tile(np.array([[[0, 1]]]), (32_770, 1, 1))
    dump = sglang_dump(one_text(experts, prompt=32_769), layers=1)
    with pytest.raises(UserError, match=r"a prompt of 32769 tokens; a trace holds .* 32768"):
        take(write_json(tmp_path / "a.json", dump), tmp_path / "trace")
