"""`spac calibrate` writes a profile that simulate takes by its path, with the measured times."""

import json
from pathlib import Path

import pytest
import torch
import yaml

from experiments.profile_file import PROFILE_NAME, read_hardware, take_profile
from policies.errors import UserError
from simulator.cost_tables import cost_table
from simulator.draft_profile import draft_profile
from simulator.hardware import hardware_profile
from simulator.model_profile import model_profile
from tests.experiments.conftest import Spac
from traces.manifest import ModelInfo

torch.set_num_threads(1)
SMALL = ("model=trace", "gamma=2", "rows=[1,2,3,4]", "repeats=2", "passes=1")


def test_a_profile_is_measured_and_taken(spac: Spac, dense_trace: Path) -> None:
    outcome = spac("calibrate", f"trace={dense_trace}", *SMALL)
    assert outcome.code == 0, outcome.err
    assert "held-out error" in outcome.out and "GB/s" in outcome.out
    folder = Path("outputs/calibrate/latest")
    assert (folder / "calibration.png").stat().st_size > 10_000
    points = json.loads((folder / "calibration.json").read_text())["points"]
    assert {"link", "expert, CPU", "expert, GPU"} <= {one["curve"] for one in points}
    text = (folder / PROFILE_NAME).read_text()
    assert text.startswith("# Measured by spac calibrate on: device stand-in")

    values = yaml.safe_load(text)
    hardware = hardware_profile(values)
    assert hardware.measured is not None
    info = ModelInfo("m", 3, 16, 2, 3 * 128 * 32 * 4)
    small = read_model("trace")
    model = model_profile(small, "model", info)
    draft = draft_profile({"name": "d", "bytes": 1, "step_bytes": 1, "layers": 1,
                           "kv_bytes_per_token": 0})  # fmt: skip
    table = cost_table(hardware, model, draft, 3)
    assert table.cpu_ns.tolist() == hardware.measured.cost_table(3).cpu_ns.tolist()
    assert table.draft_step_ns == hardware.measured.draft_step_ns
    other = cost_table(hardware, model_profile(read_model("qwen3-30b-a3b")), draft, 3)
    assert other.expert_bytes == 9_437_184 and other.cpu_ns[1] > table.cpu_ns[1]

    simulated = spac(
        "simulate", f"trace={dense_trace}", "model=trace", f"hardware={folder}", "gamma=2",
        "policy=lru_cpu",
    )  # fmt: skip
    assert simulated.code == 0, simulated.err
    several = spac(
        "simulate", "-m", f"trace={dense_trace}", "model=trace", f"hardware={folder}", "gamma=1,2",
        "policy=lru_cpu",
    )  # fmt: skip
    assert several.code == 0, several.err


def read_model(name: str) -> dict:
    from experiments.commands import CONF

    return yaml.safe_load((CONF / "model" / f"{name}.yaml").read_text())


def test_only_paths_are_taken_out_of_the_words() -> None:
    assert take_profile(["hardware=rtx4090", "gamma=2"]) == (None, ["hardware=rtx4090", "gamma=2"])
    path, rest = take_profile(["gamma=2", "hardware=some where/x[1].yaml"])
    assert path == Path("some where/x[1].yaml") and rest == ["gamma=2"]


@pytest.mark.parametrize(
    ("content", "message"), [("a: [", "not valid YAML"), ("- 1", "expected keys")]
)
def test_a_foreign_file_is_refused(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        read_hardware(path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("slots=2",), "use at least 6"),
        (("link=0",), "link=0"),
        (("device=abacus",), "device=abacus is unknown"),
        (("rows=[2,1]",), "must be rising"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    words: tuple[str, ...], message: str, spac: Spac, dense_trace: Path
) -> None:
    keys = {word.partition("=")[0] for word in words}
    small = [word for word in SMALL if word.partition("=")[0] not in keys]
    assert message in spac("calibrate", f"trace={dense_trace}", *small, *words).error
