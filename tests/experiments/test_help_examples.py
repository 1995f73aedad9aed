"""Every example of every `spac COMMAND --help` runs as printed, in a folder where what it names is.

Keys that an example leaves out get small values. What takes long in small as well is marked slow.
"""

import io
import json
import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from experiments.__main__ import main
from experiments.commands import COMMANDS
from experiments.help_text import examples
from experiments.readme import VALIDATION
from runtime.checkpoints import SHIPPED_PAIR
from traces.manifest import ModelInfo
from traces.synthetic_routing import RoutingLaw, generate_routing

SMALL = {
    "demo": ("requests=2", "trace=code", "policy=[spac,lru_cpu,belady]", "sweep_traces=1",
             "sweep_ratios=[0.5]", "record_requests=2", "record_tokens=8", "run_tokens=8"),
    "record": ("requests=2", "max_new_tokens=6"),
    "simulate": ("requests=2",),
    "compare": ("trace=code", "requests=2", "workers=1", "pictures=false"),
    "run": ("requests=1", "max_new_tokens=6", "paced=false"),
    "calibrate": ("model=trace", "rows=[1,2,4]", "repeats=2", "passes=1"),
    "validate": ("policy=[all_cpu,lru_fetch]", "runs=2", "model=trace", "rows=[1,2,4]",
                 "repeats=2", "passes=1", "slow_motion=1", "requests=2"),
    "bench": ("size=small",),
    "tune": ("trials=2", "requests=5", "pictures=false"),
}  # fmt: skip
STUDIES = {
    "cells": ("cells=few_cells.yaml", "workers=1"),
    "theory": ("requests=2", "errors=[0,1]", "shuffles=2"),
    "paper": ("tokens=24", "sensitivity=false"),
}
FETCHES_TEXTS = "train-pair"  # its first step reads packages of the network; tests/runtime/training
SLOW = {"demo", "calibrate", "validate", "study", "bench", "tune"}
PROMPTS = '{"id": "a", "text": "def main(argv):"}\n{"id": "b", "text": "import os"}\n'
FEW_CELLS = """
cache_ratios: [0.3]
windows: [3]
policies: [lru_cpu, ours, foresight]
tuned: [lru_cpu]
short_gammas: [0]
no_draft: [ours, lru_cpu]
nulls: [ours]
traces:
- {trace: code, requests: 2, model: qwen3-30b-a3b, draft: qwen3-4b-fp8}
"""


def small_words(words: list[str]) -> list[str]:
    """`words` with small values for the keys that they leave out."""
    given = {word.partition("=")[0] for word in words if "=" in word}
    if words[0] == "run" and not given & {"workload", "prompts"}:  # no number of requests
        given.add("requests")
    if "clock=unpadded" in words or "device=cuda" in words:
        given.add("slow_motion")
    extra = STUDIES[words[1]] if words[0] == "study" else SMALL.get(words[0], ())
    return words + [word for word in extra if word.partition("=")[0] not in given]


def example_cases() -> Iterator[object]:
    """All examples but those that fetch texts first."""
    for name, command in COMMANDS.items():
        for example in examples(command):
            words = shlex.split(example)[1:]
            marks = [pytest.mark.slow] if name in SLOW else []
            if name != FETCHES_TEXTS:
                yield pytest.param(words, id=example.removeprefix("spac "), marks=marks)


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder after a day's work: own prompts, checkpoints and routing, and earlier outputs."""
    folder = tmp_path_factory.mktemp("day")
    (folder / "path/to").mkdir(parents=True)
    (folder / "path/to/qwen3-moe").symlink_to(SHIPPED_PAIR / "target")
    (folder / "path/to/draft").symlink_to(SHIPPED_PAIR / "draft")
    (folder / "my_prompts.jsonl").write_text(PROMPTS)
    (folder / "few_cells.yaml").write_text(FEW_CELLS)
    (folder / "routing_files").mkdir()
    responses_file(folder / "responses.jsonl")
    routing_file(folder / "routing_files/other.npz")
    before = (
        ("record", "workload=code"),
        ("simulate", "trace=code", "policy=spac"),
        ("compare", "policy=[spac,lru_cpu]"),
        ("run", "workload=code"),
    )
    previous = Path.cwd()
    os.chdir(folder)
    try:
        for words in before:
            assert main(small_words(list(words))) == 0, words
        shutil.copytree("outputs/compare/1", "outputs/compare/3")
        for command, made in (("demo", Path("outputs/compare/1")), ("validate", VALIDATION.parent)):
            shutil.copytree(made, f"outputs/{command}/1")
            Path(f"outputs/{command}/latest").symlink_to("1")
    finally:
        os.chdir(previous)
    return folder


@pytest.fixture
def place(day: Path, tmp_path: Path) -> Path:
    """A copy of it, since examples write there too."""
    return Path(shutil.copytree(day, tmp_path / "day", symlinks=True))


def responses_file(path: Path) -> None:
    """Routing of the shape of Qwen3-30B-A3B, a line for each token."""
    experts = [list(range(layer, layer + 8)) for layer in range(48)]
    rows = ({"request": 0, "position": position, "experts": experts} for position in range(4))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def routing_file(path: Path) -> None:
    """Routing of a made-up text, as another project would write it."""
    law, model = RoutingLaw(1.2, 1.0, 0.97, 0.2), ModelInfo("m", 2, 16, 2, 1)
    np.savez(
        path, experts=generate_routing(law, model, 400, seed=0).experts,
        token=np.arange(400, dtype=np.int32) % 9, seq=np.repeat(np.arange(4, dtype=np.int32), 100),
        pos=np.tile(np.arange(100, dtype=np.int32), 4), vocab=np.array(["w"]),
        meta='{"model": "openai/gpt-oss-20b", "experts": 16}',
    )  # fmt: skip


@pytest.mark.parametrize("words", list(example_cases()))
def test_the_example_runs(
    words: list[str],
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "160")
    on_gpu = any(word.startswith("device=cuda") for word in words)
    if on_gpu and torch.cuda.is_available():
        pytest.skip("at the size of a real model; `make gpu-check` runs it")
    monkeypatch.setattr("sys.stdin", io.StringIO("import os\n"))  # where an example is a chat
    code = main(small_words(words))
    captured = capsys.readouterr()
    if on_gpu:
        assert code == 2 and "device=cuda" in captured.err and captured.err.count("\n") == 1
    else:
        assert code == 0, captured.err
        assert captured.out.strip()
