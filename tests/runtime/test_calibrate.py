"""Calibration of a padded stand-in, where padding only ever adds; comparisons of made-up runs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from offload_setup import flat_costs

from policies.api import CPU, GPU, NEEDS
from policies.errors import UserError
from runtime.calibrate import Effort, calibrate
from runtime.calibrate_compared import measure_differences
from runtime.calibrate_layers import Bench, contention, held_up, level
from runtime.calibrate_link import ALONE, LOADED, copy_sizes
from runtime.calibration import Calibration
from runtime.calibration_policy import CalibrationPolicy
from runtime.model_shape import model_shape
from runtime.random_model import random_model
from runtime.standin import standin
from traces.mapped_replay import MappedReplay
from traces.reader import open_trace
from traces.replay import open_replay
from traces.runlog import RunLog

torch.set_num_threads(1)
MILLISECOND = 1_000_000
SHAPE = model_shape(
    "tiny", 2, 64, 4, hidden=32, expert_width=16, layer_parameters=6000, pass_parameters=800,
    key_width=8, distinct=1, draft_layers=1, draft_parameters=100,
)  # fmt: skip
EFFORT = Effort(slots=16, staging=1, rows=(1, 2, 4), repeats=3, passes=2, gamma=2, paced=True)
ONES = (np.arange(65) > 0).astype(np.int64)
COSTS = flat_costs(
    cpu_ns=np.arange(65) * 2 * MILLISECOND, gpu_ns=ONES * MILLISECOND, dense_ns=ONES * MILLISECOND,
    draft_step_ns=MILLISECOND, pass_ns=MILLISECOND, contention=512, copy_ns=MILLISECOND,
)  # fmt: skip
TRACE = Path(__file__).parents[2] / "traces" / "data" / "prose"
RATE = 2e6  # an expert of 6 KiB takes 3 ms


@pytest.fixture(scope="module")
def result() -> tuple[Calibration, list[str], int]:
    device, ticks = standin(RATE, 0), []
    model = random_model(SHAPE, torch.float32, device, EFFORT.slots, EFFORT.staging)
    replay = MappedReplay(open_replay(open_trace(TRACE)), SHAPE.info(torch.float32), requests=1)
    calibration = calibrate(model, replay, EFFORT, COSTS, ticks.append)
    device.close()
    return calibration, ticks, EFFORT.steps(model)


def test_what_is_measured_is_never_faster_than_the_padding(
    result: tuple[Calibration, list[str], int],
) -> None:
    """Only this side: on a busy machine all may be slower, to any amount. Not the layer without
    experts: a part of it is taken off for a decision, as much as differences of times tell.
    """
    calibration, _, _ = result
    padded = {"expert, CPU": [2, 4, 8], "expert, GPU": [1, 1, 1]}
    for curve, least in padded.items():
        points = calibration.curve(curve)
        assert [one.x for one in points] == [1, 2, 4]
        found = np.array([one.median_ns for one in points])
        assert (found >= np.array(least) * MILLISECOND).all(), (curve, points)
    assert calibration.times.draft_step_ns >= MILLISECOND
    assert calibration.times.pass_ns >= MILLISECOND
    link = calibration.curve(ALONE)
    assert len(link) > 3 and all(one.median_ns >= 1e9 * one.x / RATE for one in link)


def test_everything_is_told(result: tuple[Calibration, list[str], int]) -> None:
    calibration, ticks, steps = result
    assert len(ticks) == steps
    curves = {one.curve for one in calibration.points}
    assert {ALONE, LOADED, "expert, CPU", "expert, GPU", "synchronise"} <= curves
    assert {ALONE, LOADED} <= set(calibration.errors())  # three rows leave none to hold out
    data = calibration.as_data()
    assert data["machine"]["device"] == "stand-in" and data["machine"]["torch"]
    assert "1 distinct layers used in turn for 2" in data["notes"][0]
    table = calibration.times.cost_table(20)
    assert len(table.cpu_ns) == 21


def test_too_few_slots_are_refused() -> None:
    device = standin(RATE, 0)
    model = random_model(SHAPE, torch.float32, device, 4, 1)
    with pytest.raises(UserError, match="use at least 8"):
        calibrate(model, None, Effort(slots=7), COSTS, lambda word: None)  # type: ignore[arg-type]
    assert SHAPE.layout(torch.float32).expert_bytes in copy_sizes(model)
    device.close()


@pytest.mark.parametrize("paced", [True, False])
def test_a_decision_after_a_join_delays_the_next_layer_unless_the_device_is_busy(
    paced: bool,
) -> None:
    """The host has time to spare only in a padded layer of 50 ms."""
    device, pause = standin(RATE, 0), 20 * MILLISECOND
    model = random_model(SHAPE, torch.float32, device, EFFORT.slots, EFFORT.staging)
    slow = COSTS._replace(dense_ns=ONES * 50 * MILLISECOND)
    bench = Bench(model, slow, EFFORT.slots, EFFORT.staging, 8, paced)
    layers = bench.uniform(CalibrationPolicy("cpu", pause_ns=pause), 1).layers
    quickest = (layers["t1_ns"] - layers["t0_ns"])[layers["layer"] == 1].min()
    assert 50 * MILLISECOND <= quickest < 60 * MILLISECOND if paced else quickest >= pause
    device.close()


@pytest.mark.parametrize(("longer", "share"), [(0, 0.0), (50, 0.5), (100, 1.0), (300, 1.0)])
def test_the_share_of_a_decision_that_holds_up_the_next_layer(longer: int, share: float) -> None:
    def log(leave: int, dense: int) -> RunLog:
        layers = pd.DataFrame({"pass_index": [0, 0, 1, 1], "layer": [0, 1] * 2, "t0_ns": 0})
        layers = layers.assign(leave_decision_ns=leave, t1_ns=[0, dense] * 2)  # 0: none before it
        return RunLog(None, layers, layers, layers, layers)  # type: ignore[arg-type]

    assert held_up(log(20, 700), log(120, 700 + longer)) == share


class MadeUpBench:
    """Runs whose times are known: 1,000 ns of work on the CPU, done at `rate` beside traffic."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def uniform(self, policy: CalibrationPolicy, rows: int, context: int = 64) -> RunLog:
        """As Bench.uniform, with the columns that are compared."""
        random = np.random.default_rng(0)
        lasting = 1000.0 + (400 * (1 - self.rate) if policy.traffic else 0)
        lasting = lasting * random.uniform(0.99, 1.01, 30)
        lasting[::3] *= random.uniform(1, 10, 10)  # layers that others on the machine held up
        ends = np.cumsum(lasting).astype(np.int64)
        begins = np.append(0, ends[:-1])
        needs = {"router_mass": 40, "next_layer_2": 60}
        decided = 900 + sum(needs.get(need, 0) for need in policy.needs)
        layers = pd.DataFrame({
            "cpu_begin_ns": begins, "cpu_end_ns": ends, "cpu_busy_ns": ends - begins,
            "gpu_begin_ns": 0, "gpu_end_ns": 0, "t0_ns": 0, "t1_ns": 500 + context, "layer": 0,
            "t2_ns": decided, "decision_ns": 100, "leave_decision_ns": 0, "join_ns": ends,
            "pass_index": range(30),
        })  # fmt: skip
        copies = pd.DataFrame({"begin_ns": begins, "landing_ns": begins + 400})
        passes = pd.DataFrame({"pass_index": range(30), "end_ns": ends, "gamma": 0,
                               "draft_end_ns": 0, "begin_ns": 0})  # fmt: skip
        drafts = pd.DataFrame({"decision_ns": [0]})
        return RunLog(None, passes, layers, drafts, copies)  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", [0.25, 0.5, 0.9])
def test_differences_are_found_although_a_third_of_the_layers_were_held_up(rate: float) -> None:
    bench, ticks = MadeUpBench(rate), []
    alone = bench.uniform(CalibrationPolicy("cpu"), 2)
    found = measure_differences(bench, alone, 2, 0.0, ticks.append)  # type: ignore[arg-type]
    assert found["contention"] / 1024 == pytest.approx(rate, abs=0.05)
    assert found["context_ns_per_1024"] == 1024
    assert dict(zip(NEEDS, found["needs_ns"], strict=True)) == {
        "router_mass": 40, "next_layer_1": 0, "next_layer_2": 60, "next_layer_3": 0,
        "draft_tokens": 0,
    }  # fmt: skip
    assert len(ticks) == 1 + len(NEEDS)


def test_a_level_does_not_count_the_link_twice() -> None:
    class Log:
        layers = pd.DataFrame({
            "placement": [[CPU, CPU, GPU]], "counts": [[1, 2, 2]], "t2_ns": [0],
            "cpu_begin_ns": [0], "cpu_end_ns": [600], "gpu_begin_ns": [30], "gpu_busy_ns": [120],
        })  # fmt: skip
        copies = pd.DataFrame({"begin_ns": [0], "landing_ns": [400]})

    # At half rate the busy 400 ns do the work of 200: 400 ns of work, alone it would be 300.
    times = np.array([0, 100, 200])
    assert level(Log(), "cpu", times, 512) == pytest.approx(4 / 3)  # type: ignore[arg-type]
    assert level(Log(), "gpu", np.array([0, 50, 100])) == pytest.approx(1.5)  # type: ignore[arg-type]
    Log.layers["placement"] = [[GPU, GPU, GPU]]
    assert level(Log(), "cpu", times) is None  # type: ignore[arg-type]


def test_contention_needs_traffic() -> None:
    class Log:
        layers = pd.DataFrame({"cpu_begin_ns": [0, 100], "cpu_end_ns": [100, 200]})
        copies = pd.DataFrame({"begin_ns": [0, 100], "landing_ns": [50, 150]})

    # 50 of 80 ns of work are done in the 50 ns without traffic, 30 in the 50 ns beside it.
    assert contention(80, Log()) == round(1024 * 0.6)  # type: ignore[arg-type]
    Log.copies = pd.DataFrame({"begin_ns": [0], "landing_ns": [10]})
    assert contention(80, Log()) is None  # type: ignore[arg-type]
