"""Every format: the values of the file arrive in a trace that passes its check."""

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from foreign_files import (
    EXPERTS,
    GENERATED,
    GIVEN,
    MODEL,
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

from traces.check import check_trace
from traces.importers.routing import Given
from traces.importers.sglang import CONVERT
from traces.replay import open_replay
from traces.rows import DECODE, PREFILL

TEXT = routed(PROMPT + GENERATED)


def csv_file(folder: Path) -> Path:
    lines = ["request,position,layer,experts,token,phase"]
    for t, token in enumerate(TEXT):
        phase = "prefill" if t < PROMPT else "decode"
        lines += [
            f"0,{t},{layer},{row[0]} {row[1]},{900 + t},{phase}" for layer, row in enumerate(token)
        ]
    path = folder / "file.csv"
    path.write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n", encoding="utf-8")
    return path


def json_lines_file(folder: Path) -> Path:
    rows = [
        {
            "request": 0,
            "position": t,
            "experts": token.tolist(),
            "token": 900 + t,
            "phase": "prefill" if t < PROMPT else "decode",
        }
        for t, token in enumerate(TEXT)
    ]
    return write_lines(folder / "file.jsonl", [{"model": MODEL, "num_experts": EXPERTS}, *rows])


# Format, maker of a file with TEXT, and whether it holds the last token as well.
FILES: dict[str, tuple[str, Callable[[Path], Path], int]] = {
    "csv": ("csv", csv_file, 0),
    "jsonl": ("jsonl", json_lines_file, 0),
    "policylang parquet": (
        "moe-policylang",
        lambda folder: policylang_parquet(folder / "file.parquet", policylang_columns(TEXT)),
        0,
    ),
    "policylang lines": (
        "moe-policylang",
        lambda folder: write_lines(
            folder / "file.jsonl", policylang_lines(policylang_columns(TEXT))
        ),
        0,
    ),
    "sglang": (
        "sglang",
        lambda folder: write_json(folder / "file.json", sglang_dump(one_text(TEXT))),
        0,
    ),
    "vllm": ("vllm", lambda folder: write_json(folder / "file.json", vllm_response(TEXT[:-1])), 1),
    "vllm lines": (
        "vllm",
        lambda folder: write_lines(folder / "file.jsonl", [vllm_response(TEXT[:-1])]),
        1,
    ),
    "vllm 0.21": (
        "vllm",
        lambda folder: write_json(
            folder / "file.json",
            vllm_response(TEXT[:-1], routed_experts=TEXT[PROMPT:-1].tolist())
            | {"prompt_routed_experts": TEXT[:PROMPT].tolist()},
        ),
        1,
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_rows_arrive_and_the_trace_is_valid(name: str, tmp_path: Path) -> None:
    format, make, missing = FILES[name]
    trace = take(make(tmp_path), tmp_path / "trace")
    batch, manifest = trace.load(), trace.manifest
    rows = PROMPT + GENERATED - missing
    np.testing.assert_array_equal(batch.experts, TEXT[:rows])
    assert (batch.phase[:PROMPT] == PREFILL).all() and (batch.phase[PROMPT:] == DECODE).all()
    assert (batch.start + batch.row).tolist() == list(range(rows))
    assert len(set(batch.input_token.tolist())) == rows
    np.testing.assert_array_equal(batch.target_choice[PROMPT:-1], batch.input_token[PROMPT + 1 :])
    assert (manifest.kind, manifest.recorder) == ("text", f"import {format}")
    assert (manifest.model.name, manifest.model.experts) == (MODEL, EXPERTS)
    report = check_trace(trace.path)
    assert report.ok and report.rows == rows
    assert open_replay(trace, acceptance=0.5).request_ids == (0,)


@pytest.mark.parametrize("name", FILES)
def test_the_same_file_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    source = FILES[name][1](tmp_path)
    first, second = take(source, tmp_path / "one"), take(source, tmp_path / "two")
    assert first.digest == second.digest


def test_fingerprint(tmp_path: Path) -> None:
    experts = routed(6, layers=24)
    source = write_json(tmp_path / "False_False_examples.json", fingerprint(experts))
    trace = take(source, tmp_path / "trace", given=Given())
    batch, model = trace.load(), trace.manifest.model
    np.testing.assert_array_equal(batch.experts, experts)
    assert batch.start.tolist() == list(range(178, 184)) and (batch.phase == DECODE).all()
    assert (model.name, model.experts, model.top_k) == ("openai/gpt-oss-20b", 32, 2)
    assert batch.input_token.tolist() == [0, 1, 0, 1, 0, 1]
    assert batch.router_weights is not None
    assert batch.router_weights[0, 0].tolist() == [0.625, 0.375]
    assert check_trace(trace.path).ok


def test_fingerprints_in_a_list_are_requests(tmp_path: Path) -> None:
    texts = [routed(4, 1, layers=24), routed(7, 2, layers=24)]
    source = write_json(tmp_path / "file.json", [fingerprint(one) for one in texts])
    batch = take(source, tmp_path / "trace", given=Given()).load()
    assert batch.request.tolist() == [0] * 4 + [1] * 7
    np.testing.assert_array_equal(batch.experts, np.concatenate(texts))


def test_experts_are_put_in_the_order_of_their_weights(tmp_path: Path) -> None:
    columns = policylang_columns(TEXT)
    columns["router_scores"] = [[0.25, 0.75]] * len(columns["prompt_id"])
    batch = take(policylang_parquet(tmp_path / "a.parquet", columns), tmp_path / "trace").load()
    np.testing.assert_array_equal(batch.experts, TEXT[:, :, ::-1])
    assert batch.router_weights is not None
    assert (batch.router_weights == np.float16([0.75, 0.25])).all()


def test_token_ids_of_a_prompt_alone_are_no_column(tmp_path: Path) -> None:
    """The recorder of moe-policylang learns a generated token only after its rows are written."""
    columns = policylang_columns(TEXT)
    columns["token_id"] = [
        one if phase == "prefill" else None
        for one, phase in zip(columns["token_id"], columns["phase"], strict=True)
    ]
    trace = take(policylang_parquet(tmp_path / "a.parquet", columns), tmp_path / "trace")
    np.testing.assert_array_equal(trace.load().experts, TEXT)
    assert trace.manifest.notes["tokens"].startswith("not in the file")


def test_the_line_that_converts_a_torch_file_is_right(tmp_path: Path) -> None:
    """A dump as SGLang writes it, with tensors, through the command of the refusal."""
    dump = sglang_dump(one_text(TEXT))
    for record in dump["records"]:
        for key in ("topk_ids_of_layer", "global_physical_count"):
            record[key] = torch.tensor(record[key], dtype=torch.int32)
    dump["last_physical_to_logical_map"] = torch.tensor(dump["last_physical_to_logical_map"])
    torch.save(dump, tmp_path / "recorder.pt")
    words = shlex.split(CONVERT)
    assert words[0] == "python" and words[-1] == "FILE.pt"
    command = [sys.executable, *words[1:-1], str(tmp_path / "recorder.pt")]
    subprocess.run(command, check=True)
    batch = take(tmp_path / "recorder.pt.json", tmp_path / "trace").load()
    np.testing.assert_array_equal(batch.experts, TEXT)


def test_sglang_requests_are_told_apart_by_position(tmp_path: Path) -> None:
    """Two requests at once, the second in two chunks; then a third in the place of the first."""
    one, two, three = (routed(8, seed) for seed in (1, 2, 3))
    records = [
        sglang_pass(one[:3], [0, 1, 2], 1, [3]),
        sglang_pass(one[3:4], [3], 2),
        sglang_pass(two[:4], [0, 1, 2, 3], 1, [4]),
        sglang_pass(two[4:6], [4, 5], 1, [2]),
        sglang_pass(np.stack([one[4], two[6]]), [4, 6], 2),
        sglang_pass(np.stack([two[7]]), [7], 2),
        sglang_pass(three[:5], list(range(5)), 1, [5]),
        sglang_pass(three[5:6], [5], 2),
    ]
    batch = take(write_json(tmp_path / "a.json", sglang_dump(records)), tmp_path / "trace").load()
    assert batch.request.tolist() == [0] * 5 + [1] * 8 + [2] * 6
    np.testing.assert_array_equal(batch.experts, np.concatenate([one[:5], two[:8], three[:6]]))
    assert (batch.phase == PREFILL).tolist() == [True] * 3 + [False] * 2 + [True] * 6 + [
        False
    ] * 2 + [True] * 5 + [False]


def test_sglang_replicas_are_mapped_back(tmp_path: Path) -> None:
    dump = sglang_dump(one_text(TEXT + 0))
    physical = {"records": one_text(np.where(TEXT == 0, EXPERTS, TEXT))}
    physical["last_physical_to_logical_map"] = [[*range(EXPERTS), 0]] * 3
    a = take(write_json(tmp_path / "a.json", dump), tmp_path / "one", given=GIVEN)
    b = take(write_json(tmp_path / "b.json", physical), tmp_path / "two", given=GIVEN)
    np.testing.assert_array_equal(a.load().experts, b.load().experts)
    assert "replicas" in b.manifest.notes and "replicas" not in a.manifest.notes


def test_sglang_dense_layers_and_what_the_file_says_of_experts(tmp_path: Path) -> None:
    wide = np.concatenate([np.full_like(TEXT[:, :1], -1), TEXT], axis=1)
    source = write_json(tmp_path / "a.json", sglang_dump(one_text(wide), layers=4))
    trace = take(source, tmp_path / "trace", given=Given(name="m", expert_bytes=1))
    np.testing.assert_array_equal(trace.load().experts, TEXT)
    assert trace.manifest.model.experts == EXPERTS
