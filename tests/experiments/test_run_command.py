"""`spac run` on a tiny pair: text, figures, proofs, and what it refuses."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from experiments import run as run_command
from experiments.commands import COMMANDS
from experiments.configuration import compose_config
from experiments.proofs import Proof
from policies.errors import UserError
from policies.sources import source_hash
from runtime.tiny import TinyShape, make_tiny_pair
from traces.metrics import metrics
from traces.runlog import read_runlog

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pair")
    make_tiny_pair(path, seed=3, shape=TinyShape(layers=3))
    return path


def run(pair: Path, outputs: Path, *words: str) -> tuple[int, Path]:
    """Exit code and output folder of `spac run` on the tiny pair."""
    usual = [
        f"target={pair / 'target'}", f"draft_path={pair / 'draft'}", f"outputs={outputs}",
        "max_new_tokens=12", "cache_ratio=0.3", "paced=false",
    ]  # fmt: skip
    replaced = {word.partition("=")[0] for word in words}
    if "slots" in replaced:
        replaced.add("cache_ratio")
    if "out" in replaced:
        replaced.add("outputs")
    given = [word for word in usual if word.partition("=")[0] not in replaced]
    code = run_command.run(compose_config(COMMANDS["run"], [*given, *words]))
    return code, outputs / "run" / "latest"


def winner_file(folder: Path, **changes: Any) -> Path:
    content = {
        "policy": "lru_fetch", "target": "policies.zoo.lru_fetch.lru_fetch", "parameters": {},
        "gamma": 2, "cache_ratio": 0.4, "model": "trace", "hardware": "standin",
        "source_hash": source_hash(), "of_best": 1.0, "of_oracle": None, "runner_up": None,
        "lead": None, "approximate": False, "inputs": {},
    } | changes  # fmt: skip
    path = folder / "winner.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_prompt_is_continued_measured_and_proved(
    pair: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, folder = run(pair, tmp_path, "policy=spac", "prompt=w7 w8 w9", "proofs=true")
    assert code == 0
    shown = capsys.readouterr()
    (text,) = json.loads((folder / "texts.json").read_text())
    assert shown.out == f"w7 w8 w9{text}\n", "the text alone"
    assert "12 tokens, " in shown.err
    assert re.search(r"tokens/s, \d+% of checked drafts accepted, \d+% of experts hit", shown.err)
    proofs = json.loads((folder / "proofs.json").read_text())
    assert [proof["holds"] for proof in proofs] == [True] * 4
    log = read_runlog(folder / "runlog")
    assert log.info.complete and log.info.policy == "spac"
    stored = json.loads((folder / "metrics.json").read_text())
    assert stored["tokens_per_second"] == metrics(log).tokens_per_second


def test_a_winner_is_run_as_it_won(
    pair: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = tmp_path / "mine.jsonl"
    lines = [{"id": str(n), "text": f"w{n} w{n + 1} w{n + 2}"} for n in (6, 16, 26)]
    prompts.write_text("\n".join(map(json.dumps, lines)))
    winner_file(tmp_path, parameters={})
    code, folder = run(
        pair, tmp_path, f"winner={tmp_path}", f"prompts={prompts}", "workload=mine", "requests=3",
        "cache_ratio=null", "proofs=false",
    )  # fmt: skip
    shown = capsys.readouterr().out
    for word in ("tokens per second", "hit rate", "copied to VRAM"):
        assert word in shown
    log = read_runlog(folder / "runlog")
    assert code == 0
    assert log.info.policy == "lru_fetch"
    assert log.info.slots == int(0.4 * 3 * 8)
    assert set(log.passes["gamma"]) == {0, 2}  # prefill has none
    assert log.passes.groupby("request")["warmup"].first().tolist() == [True, False, False]
    assert not (folder / "proofs.json").exists()


def test_a_winner_without_speculation_needs_no_draft(pair: Path, tmp_path: Path) -> None:
    winner_file(tmp_path, gamma=0)
    code, folder = run(pair, tmp_path, f"winner={tmp_path}", "prompt=w7", "proofs=true")
    assert code == 0
    holds = [proof["holds"] for proof in json.loads((folder / "proofs.json").read_text())]
    assert holds == [True] * 4


def test_a_failed_proof_gives_exit_code_1(
    pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_command, "prove", lambda *_: [Proof("text", False, "differs")])
    code, _ = run(pair, tmp_path, "prompt=w7", "proofs=true")
    assert code == 1


@pytest.mark.parametrize(
    ("words", "accepted", "gamma"),
    [
        (["draft_path=ngram"], True, {0, 4}),
        (["draft_path=ngram", "sampling.mode=greedy"], True, {0, 4}),
        (["draft_path=none"], False, {0}),
        (["draft_path=none", "gamma=0"], False, {0}),
        (["sampling.top_k=3", "sampling.top_p=0.9"], True, {0, 4}),
    ],
)
def test_drafts_and_limits_change_no_proof(
    words: list[str], accepted: bool, gamma: set[int], pair: Path, tmp_path: Path
) -> None:
    drawn = [] if "sampling.mode=greedy" in words else ["sampling.temperature=0.3"]
    code, folder = run(
        pair, tmp_path, "prompt=w7 w8 w7 w8 w7", "proofs=true", "max_new_tokens=40", *drawn,
        *words,
    )  # fmt: skip
    assert code == 0
    proofs = json.loads((folder / "proofs.json").read_text())
    untried = 1 if "draft_path=ngram" in words else 0
    assert [proof["holds"] for proof in proofs].count(None) == untried
    log = read_runlog(folder / "runlog")
    assert set(log.passes["gamma"]) <= gamma
    assert (log.passes["accepted"].sum() > 0) == accepted


def test_rejection_sampling_with_limits_runs_and_says_what_it_cannot_prove(
    pair: Path, tmp_path: Path
) -> None:
    code, folder = run(
        pair, tmp_path, "prompt=w7", "proofs=true", "sampling.mode=rejection", "sampling.top_p=0.8"
    )
    assert code == 0
    assert read_runlog(folder / "runlog").info.notes["top_p"] == "0.8"
    holds = [proof["holds"] for proof in json.loads((folder / "proofs.json").read_text())]
    assert holds == [None, True, None, True]


def test_a_stop_string_ends_the_answer_and_is_not_shown(
    pair: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, free = run(pair, tmp_path, "prompt=w7", "max_new_tokens=20")
    (text,) = json.loads((free / "texts.json").read_text())
    words = text.split()
    stop = f"{words[6][1:]} {words[7]}"  # from the middle of one token into another
    capsys.readouterr()
    code, folder = run(
        pair, tmp_path, "prompt=w7", "max_new_tokens=20", f"stop='{stop}'", "proofs=true"
    )
    assert code == 0
    (kept,) = json.loads((folder / "texts.json").read_text())
    end = kept.index(stop)
    assert kept.split() == words[: len(kept.split())] and kept.endswith(stop)
    assert capsys.readouterr().out == f"w7{kept[:end]}\n"


def test_prompts_line_by_line(
    pair: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("w7 w8\n\nw9 w10 w11\n"))
    code, folder = run(pair, tmp_path, "proofs=true")
    assert code == 0
    texts = json.loads((folder / "texts.json").read_text())
    assert capsys.readouterr().out == "".join(f"{text}\n" for text in texts)
    assert len(texts) == 2
    assert all(p["holds"] for p in json.loads((folder / "proofs.json").read_text()))
    assert set(read_runlog(folder / "runlog").passes["request"]) == {0, 1}


def test_nothing_to_read_is_refused_before_anything_is_made(
    pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    with pytest.raises(UserError, match="no prompt: give prompt="):
        run(pair, tmp_path)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["policy=[spac,lru_cpu]"], "one value here, no list"),
        (["policy=belady"], "only the simulator"),
        (["max_new_tokens=1"], "2 or more"),
        (["cache_ratio=1.5"], "cache_ratio=1.5"),
        (["launch=soon"], "launch=soon"),
        (["mode=fast"], "mode=fast"),
        (["gamma=-1"], "gamma=-1"),
        (["slots=1000"], "slots=1000"),
        (["draft_path=null"], "draft_path"),
        (["winner=/nowhere/winner.yaml"], "no such file"),
        (["prompt=w7", "prompts=some.jsonl"], "exclude each other"),
        (["prompt=w7", "workload=code"], "exclude each other"),
        (["draft_path=none", "gamma=3"], "draft_path=none cannot draft 3"),
        (["sampling.mode=rejection", "sampling.top_k=0"], "top_k=0"),
        (["sampling.top_p=2"], "top_p=2"),
        (["sampling.mode=greedy", "sampling.top_k=5"], "sampling.mode=greedy"),
        (["stop=['']"], "not empty"),
        (["stop=[3]"], "must be a text"),
        (["max_new_tokens=600"], "do not fit the model's 512 positions"),
    ],
)
def test_what_cannot_be_run_is_refused(
    words: list[str], message: str, pair: Path, tmp_path: Path
) -> None:
    prompt = [] if any(word.startswith("prompt=") for word in words) else ["prompt=w7"]
    with pytest.raises(UserError, match=message):
        run(pair, tmp_path, *prompt, *words)


def test_an_existing_folder_is_not_overwritten(pair: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing is overwritten"):
        run(pair, tmp_path, "prompt=w7", f"out={tmp_path}")


def test_proofs_are_frozen_data() -> None:
    proof = Proof("text", True, "12 tokens")
    assert replace(proof, holds=None).as_data()["holds"] is None


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["device=cuda", "hardware=rtx4090"], "device=cuda: torch"),
        (["device=cuda"], "hardware= with a profile"),
        (["device=cuda", "hardware=rtx4090", "paced=true"], "use paced=false"),
        (["device=tpu"], "device=tpu is unknown"),
    ],
)
def test_a_device_that_cannot_be_used_is_refused_before_loading(
    words: list[str], said: str, pair: Path, tmp_path: Path
) -> None:
    given = [f"target={pair / 'target'}", "gamma=0", "prompt=w7", f"outputs={tmp_path}", *words]
    with pytest.raises(UserError, match=said):
        run_command.run(compose_config(COMMANDS["run"], given))
