"""`spac study`: the studies in small, their files, their refusals, the frozen values."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf

from experiments.machine import Machine
from experiments.studies.paper_fit import (
    FITTED_FILE,
    Fitted,
    bisect,
    fit_cpu_rate,
    read_fitted,
    write_fitted,
)
from experiments.studies.paper_memory import memory_of
from experiments.studies.paper_routing import fit_law, reached
from experiments.studies.paper_targets import ROUTING, Statistic
from experiments.studies.paper_world import World, generated_trace, with_cpu_rate
from experiments.studies.theory_numbers import kept, relative_speed
from policies.errors import UserError
from simulator.draft_profile import draft_profile
from simulator.hardware import hardware_profile
from simulator.model_profile import model_profile
from tests.architecture.test_configs import content
from tests.experiments.conftest import Spac
from traces.manifest import ModelInfo
from traces.synthetic_routing import RoutingLaw, generate_routing

LAW = RoutingLaw(1.2, 1.0, 0.97, 0.2)


@pytest.fixture
def machine() -> Machine:
    return Machine(
        hardware_profile(content("hardware", "rtx4090")), content("model", "qwen3-30b-a3b"),
        draft_profile(content("draft", "qwen3-4b-fp8")), 4096, None,
    )  # fmt: skip


def test_theory_in_small(spac: Spac, dense_trace: Path) -> None:
    outcome = spac(
        "study", "theory", f"trace={dense_trace}", "data=false", "gamma=3", "requests=3",
        "errors=[0,1]", "shuffles=3", "cache_ratio=0.3", "copy_to=kept",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    folder = Path("outputs/study/latest")
    assert {path.name for path in folder.iterdir()} == {
        "run.json", "table.csv", "table.parquet", "information.csv", "information.parquet",
        "entropy.png", "information.png", "errors.png", "findings.md",
    }  # fmt: skip
    information = pd.read_parquet(folder / "information.parquet")
    assert information["layer"].tolist() == [0, 1, 2]
    assert (information["entropy_count"] >= information["entropy_bit"]).all()
    errors = pd.read_parquet(folder / "table.parquet")
    assert len(errors) == 1 + 4 * 2
    assert Path("kept/findings.md").read_text() == (folder / "findings.md").read_text()
    assert not list(Path("kept").glob("*.parquet"))


def test_theory_reads_foreign_routing(spac: Spac, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    experts = generate_routing(LAW, ModelInfo("m", 2, 16, 2, 1), 300, seed=0).experts
    np.savez(
        data / "other.npz", experts=experts, token=np.zeros(300, np.int32),
        seq=np.repeat(np.arange(3, dtype=np.int32), 100), vocab=np.array(["w"]),
        pos=np.tile(np.arange(100, dtype=np.int32), 3),
        meta='{"model": "openai/gpt-oss-20b", "experts": 16}',
    )  # fmt: skip
    outcome = spac(
        "study", "theory", "trace=[]", f"data={data}", "gamma=2", "errors=[0,0.5]", "shuffles=2"
    )
    assert outcome.code == 0, outcome.err
    assert "~other" in outcome.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "usage: spac study theory|paper|formats|cells"),
        (["theori"], "unknown study 'theori', did you mean theory?"),
        (["theory", "data=nowhere"], "data=nowhere: no such folder"),
        (["theory", "errors=[0.5]", "data=false"], "need 0 and at least one rate more"),
        (["paper", "fitted=nowhere.yaml"], "spac study paper refit=true"),
    ],
)
def test_refusals(spac: Spac, dense_trace: Path, words: list[str], expected: str) -> None:
    words = (
        [*words, f"trace={dense_trace}", "gamma=2", "shuffles=1"] if "theory" in words else words
    )
    assert expected in spac("study", *words).error


def test_relative_speed_by_hand() -> None:
    rows = pd.DataFrame(
        [("a", "none", "none", 0.0, 10.0), ("a", "levels", "bit", 0.0, 20.0),
         ("a", "levels", "bit", 1.0, 15.0)],
        columns=["workload", "estimator", "signal", "error_rate", "tokens_per_second"],
    ).assign(hit_rate_per_token=0.0, prefetches=0)  # fmt: skip
    speeds = relative_speed(rows)
    assert speeds["relative"].tolist() == [2.0, 1.5]
    assert kept(speeds, "levels", "bit", 1.0) == pytest.approx(0.5)


def test_frozen_values_load() -> None:
    fitted = read_fitted()
    assert set(fitted.routing) == set(ROUTING)
    assert 3e10 < fitted.cpu_bytes_per_second < 2e11 and 0 < fitted.acceptance < 1
    assert FITTED_FILE.read_text().startswith("# Fitted once")


def test_fitted_values_survive_their_file(tmp_path: Path) -> None:
    fitted = Fitted(6.1e10, 0.83, {"one": LAW})
    write_fitted(tmp_path / "fitted.yaml", fitted)
    assert read_fitted(tmp_path / "fitted.yaml") == fitted
    OmegaConf.save({"acceptance": 0.5}, tmp_path / "half.yaml")
    with pytest.raises(UserError, match="not a file of fitted values"):
        read_fitted(tmp_path / "half.yaml")


def test_bisect() -> None:
    assert bisect(lambda x: x * x, 0, 10, 9.0, 1e-6) == pytest.approx(3.0, rel=1e-5)
    assert bisect(lambda x: x, 0, 1, 5.0, 1e-6) == pytest.approx(1.0)


def test_cpu_rate_reproduces_its_number(machine: Machine, tmp_path: Path) -> None:
    shape = ModelInfo("qwen3-30b-a3b", 48, 128, 8, 1)
    trace = generated_trace(tmp_path / "trace", LAW, shape, 3, seed=0)
    rate = fit_cpu_rate(World(machine, trace, 0.5, 1024, 0))
    assert 5e10 < rate < 8e10  # 65 GB/s by the arithmetic of the hardware profile's source


def test_contention_follows_the_rates(machine: Machine) -> None:
    assert with_cpu_rate(machine, 65e9).hardware.cpu.contention == round(1024 * 39.9 / 65)
    assert with_cpu_rate(machine, 20e9).hardware.cpu.contention == 1


def test_fit_comes_nearer_to_its_targets() -> None:
    shape = ModelInfo("m", 2, 32, 4, 1)
    targets = (Statistic("reuse", 0, 0.5), Statistic("lru", 0.25, 0.7))
    law = fit_law(targets, shape, 300, seed=0, steps=40)
    experts = generate_routing(law, shape, 300, seed=0).experts
    for one in targets:
        assert reached(experts, 32, one) == pytest.approx(one.value, abs=0.05)


def test_q4_fits_the_card_without_a_draft(machine: Machine) -> None:
    memory = memory_of(machine, model_profile(machine.model_values), 0.21)
    assert memory.q4_fits and 0.15 < memory.largest_ratio < memory.largest_ratio_no_draft < 1


@pytest.mark.slow
def test_paper_in_small(spac: Spac) -> None:
    outcome = spac("study", "paper", "tokens=24", "sensitivity=false")
    assert outcome.code == 0, outcome.err
    folder = Path("outputs/study/latest")
    assert {"findings.md", "speeds.png", "table.csv", "checks.csv", "fitted.yaml"} <= {
        path.name for path in folder.iterdir()
    }
