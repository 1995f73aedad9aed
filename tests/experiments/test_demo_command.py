"""The whole chain on a tiny pair: recording, comparison, pictures, winner, run with proofs."""

import json
from pathlib import Path

import pandas as pd
import pytest
import torch

from experiments.winner import read_winner
from runtime.tiny import make_tiny_pair
from tests.experiments.conftest import Spac
from traces.reader import open_trace
from traces.runlog import read_runlog

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pair")
    make_tiny_pair(path, seed=1)
    lines = [{"id": f"prompt {number}", "tokens": [number, 7, 9]} for number in range(1, 4)]
    (path / "prompts.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return path


def test_demo(spac: Spac, tiny_pair: Path, dense_trace: Path) -> None:
    outcome = spac(
        "demo", f"trace={dense_trace}", "hardware=standin", "model=trace", "draft=pair",
        "workers=1", "cache_ratio=0.25", "gamma=2", "sweep_ratios=[0.5]", "sweep_gammas=[1]",
        "policy=[spac,lru_cpu,belady]", "requests=3", "record_requests=2", "record_tokens=12",
        "run_tokens=8",
        f"record_target={tiny_pair}/target", f"record_draft={tiny_pair}/draft",
        f"record_prompts={tiny_pair}/prompts.jsonl",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    folder = Path("outputs/demo/latest")
    assert open_trace(folder / "traces" / "fresh", verify=True).manifest.complete
    rows = pd.read_csv(folder / "table.csv")
    assert len(rows) == len(pd.read_parquet(folder / "table.parquet"))
    assert set(rows["workload"]) == {"fresh", "synthetic"}
    assert set(rows.loc[rows["sweep"], "gamma"]) == {1, 2}
    assert len(list(folder.glob("*.png"))) >= 4
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in folder.glob("*.png"))
    winner = read_winner(folder)
    assert winner.policy != "belady"
    assert all(read_runlog(path).info.complete for path in (folder / "runlogs").iterdir())
    runs = [folder / "run"] + ([folder / "run_with_draft"] if winner.gamma == 0 else [])
    for run in runs:
        assert read_runlog(run / "runlog").info.kind == "measured"
        proofs = json.loads((run / "proofs.json").read_text())
        assert [proof["holds"] for proof in proofs] == [True] * 4
    *_, last = outcome.out.strip().splitlines()
    assert " wins (mean over 2 settings)" in last and "of what is possible" in last
    assert [f"[{step}/6]" in outcome.out for step in range(1, 7)] == [True] * 6


@pytest.mark.parametrize("command", ["record", "run"])
def test_a_checkpoint_of_another_architecture(
    spac: Spac, tiny_pair: Path, tmp_path: Path, command: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    config = json.loads((tiny_pair / "target" / "config.json").read_text())
    config |= {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
    (other / "config.json").write_text(json.dumps(config))
    draft = f"draft_path={tiny_pair}/draft"
    assert "LlamaForCausalLM" in spac(command, f"target={other}", draft).error
    assert "nowhere" in spac(command, "target=nowhere", draft).error


def test_winner_of_a_comparison_is_run(spac: Spac, tiny_pair: Path, dense_trace: Path) -> None:
    compared = spac(
        "compare", f"trace={dense_trace}", "model=trace", "draft=pair", "policy=lru_fetch",
        "cache_ratio=0.25", "gamma=3", "no_speculation=null", "workers=1", "pictures=false",
    )  # fmt: skip
    assert compared.code == 0, compared.err
    outcome = spac(
        "run", "winner=outputs/compare/latest", f"target={tiny_pair}/target",
        f"draft_path={tiny_pair}/draft", f"prompts={tiny_pair}/prompts.jsonl", "requests=2",
        "max_new_tokens=6", "paced=false",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert "lru_fetch on" in outcome.out and "gamma 3" in outcome.out
