"""`spac record` and `spac run` with every family of models."""

import json
from pathlib import Path

import pytest
import torch

from experiments import record as record_command
from experiments import run as run_command
from experiments.commands import COMMANDS
from experiments.configuration import compose_config
from runtime.checkpoints import open_target
from runtime.families import FAMILIES
from runtime.tiny_families import EXPERTS, TOP_K, make_tiny_family
from traces.check import check_trace
from traces.reader import open_trace

torch.set_num_threads(1)


@pytest.fixture(scope="module", params=FAMILIES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp(request.param)
    make_tiny_family(path, request.param, seed=9)
    (path / "mine.jsonl").write_text(
        "\n".join(json.dumps({"id": str(n), "text": f"w{n} w{n + 1} w{n + 2}"}) for n in (7, 17))
    )
    return path


def words(pair: Path, outputs: Path) -> list[str]:
    return [
        f"target={pair / 'target'}", f"draft_path={pair / 'draft'}", f"outputs={outputs}",
        "max_new_tokens=10", "requests=2", f"prompts={pair / 'mine.jsonl'}", "workload=mine",
    ]  # fmt: skip


def test_a_recording_is_whole_and_of_the_models_shape(pair: Path, tmp_path: Path) -> None:
    config = compose_config(COMMANDS["record"], [*words(pair, tmp_path), "gamma=3"])
    assert record_command.run(config) == 0
    path = tmp_path / "record" / "latest" / "mine"
    report = check_trace(path)
    assert report.ok, report.problems
    assert report.prefix_compared > 0 and report.prefix_differing == 0
    trace = open_trace(path, verify=True)
    layers = len(open_target(pair / "target").moe_layers)
    model = trace.manifest.model
    assert (model.layers, model.experts, model.top_k) == (layers, EXPERTS, TOP_K)


@pytest.mark.parametrize("experts", ["same", "int8"])
def test_a_run_is_proved(experts: str, pair: Path, tmp_path: Path) -> None:
    asked = ["policy=spac", "paced=false", "cache_ratio=0.3", "proofs=true", f"experts={experts}"]
    config = compose_config(COMMANDS["run"], [*words(pair, tmp_path), *asked])
    assert run_command.run(config) == 0
    proofs = json.loads((tmp_path / "run" / "latest" / "proofs.json").read_text())
    assert [proof["holds"] for proof in proofs] == [True] * 4
