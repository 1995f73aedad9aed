"""`spac run`: memory planned by part and shown, int8 experts, and what is refused."""

import json
import re
from pathlib import Path

import pytest
import torch

from experiments import run as run_command
from experiments.commands import COMMANDS
from experiments.configuration import compose_config
from policies.errors import UserError
from runtime.tiny import TinyShape, make_tiny_pair
from traces.runlog import read_runlog

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pair")
    make_tiny_pair(path, seed=3, shape=TinyShape(layers=3))
    return path


def run(pair: Path, outputs: Path, *words: str) -> tuple[int, Path]:
    """Exit code and output folder of `spac run` on the tiny pair."""
    given = [
        f"target={pair / 'target'}", f"draft_path={pair / 'draft'}", f"outputs={outputs}",
        "max_new_tokens=12", "paced=false", *words,
    ]  # fmt: skip
    code = run_command.run(compose_config(COMMANDS["run"], given))
    return code, outputs / "run" / "latest"


def test_the_memory_plan_is_shown_before_loading(
    pair: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = run(pair, tmp_path, "prompt=w7 w8", "staging=3")
    assert code == 0
    shown = capsys.readouterr().err.replace("\n", " ")
    found = re.search(
        r"memory: (.*) MiB for the experts on the host; .* on the device: (.*)", shown
    )
    assert found is not None
    assert float(found[1]) == pytest.approx(24 * 3 * 32 * 24 * 4 / 2**20, abs=0.01)
    for part in ("target without experts", "draft", "keys and values of 18 tokens", "3 staging"):
        assert part in found[2]


def test_plan_only_loads_and_writes_nothing(
    pair: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_command, "generate", lambda *_: pytest.fail("loaded"))
    code, _ = run(pair, tmp_path, "prompt=w7 w8", "plan=only", "experts=int8", "slots=4")
    assert code == 0
    assert not (tmp_path / "run").exists()
    shown = capsys.readouterr().err
    for part in ("24 experts, int8", "4 slots", "it fits; nothing was loaded"):
        assert part in shown
    monkeypatch.setattr("runtime.standin.available_host_bytes", lambda: 380_000)
    with pytest.raises(UserError, match=r"slots .* MiB = .*; lower slots to \d+"):
        run(pair, tmp_path, "prompt=w7 w8", "plan=only", "slots=24")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan=maybe"], "plan=maybe is unknown; use shown or only"),
        (["experts=int4"], "experts=int4 is unknown; use one of same, int8"),
        (["context=0"], "context=0: must be at least 1"),
        (["context=1000"], "context=1000: the model reads at most 512 tokens"),
        (
            ["context=10"],
            "context=10: the longest prompt of 2 tokens needs 18 with answer and drafts;",
        ),
    ],
)
def test_unfit_memory_keys_are_refused(
    words: list[str], message: str, pair: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        run(pair, tmp_path, "prompt=w7 w8", *words)


def test_int8_experts_are_proved_against_the_rounded_model(pair: Path, tmp_path: Path) -> None:
    code, folder = run(pair, tmp_path, "prompt=w7 w8 w9", "proofs=true", "experts=int8")
    assert code == 0
    proofs = json.loads((folder / "proofs.json").read_text())
    assert [proof["holds"] for proof in proofs] == [True] * 4
    info = read_runlog(folder / "runlog").info
    assert info.notes["experts"] == "int8"
    assert info.expert_bytes == 3 * 32 * 24 + 4 * (2 * 24 + 32)
