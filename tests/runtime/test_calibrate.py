"""Calibration of a padded stand-in finds the times it is padded to; padding only ever adds."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from offload_setup import flat_costs

from policies.api import CPU, GPU
from policies.errors import UserError
from runtime.calibrate import Effort, calibrate
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


def test_padded_times_are_found(result: tuple[Calibration, list[str], int]) -> None:
    calibration, _, _ = result
    times = calibration.times
    assert times.cpu_ns[0] >= 1.8 * MILLISECOND and times.cpu_ns[2] >= 7.2 * MILLISECOND
    assert min(times.gpu_ns) >= 0.9 * MILLISECOND * calibration.levels["gpu"]
    assert min(times.dense_ns) >= 0.9 * MILLISECOND
    assert times.draft_step_ns >= MILLISECOND and times.pass_ns >= MILLISECOND
    assert 256 <= times.contention <= 1024
    assert times.copy_ns + times.copy_latency_ns >= 0.99e9 * times.expert_bytes / RATE
    assert calibration.link[1] <= 1.05 * RATE


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


@pytest.mark.parametrize(("paced", "most", "least"), [(True, 0.5, 0.0), (False, 1.0, 0.5)])
def test_a_decision_after_a_join_delays_the_next_layer_unless_the_device_is_busy(
    paced: bool, most: float, least: float
) -> None:
    device = standin(RATE, 0)
    model = random_model(SHAPE, torch.float32, device, EFFORT.slots, EFFORT.staging)
    slow = COSTS._replace(dense_ns=ONES * 5 * MILLISECOND)  # the host has time to spare
    bench = Bench(model, slow, EFFORT.slots, EFFORT.staging, 16, paced)
    alone, paused = (bench.uniform(CalibrationPolicy("cpu", pause_ns=pause), 1)
                     for pause in (0, MILLISECOND // 2))  # fmt: skip
    assert least <= held_up(alone, paused) <= most
    device.close()


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
        copies = pd.DataFrame({"begin_ns": [0, 50], "landing_ns": [50, 100]})

    # 100 of 200 ns with traffic, 160 ns of work: 60 ns of it were done in the busy 100.
    assert contention(80, Log()) == round(1024 * 0.6)  # type: ignore[arg-type]
    Log.copies = pd.DataFrame({"begin_ns": [0], "landing_ns": [10]})
    assert contention(80, Log()) is None  # type: ignore[arg-type]
