"""The picture of one pass says how busy each lane was, and shows it."""

from pathlib import Path

import pytest

from experiments.lanes_figure import busy_ns, pass_lanes_figure, typical_pass
from policies.zoo.lru_cpu import lru_cpu
from policies.zoo.lru_fetch import lru_fetch
from simulator.cost_tables import cost_table
from simulator.draft_profile import draft_profile
from simulator.hardware import hardware_profile
from simulator.model_profile import model_profile
from simulator.reference import simulate
from simulator.settings import SimulationSettings
from simulator.timeline import Interval, pass_lanes
from tests.architecture.test_configs import content
from traces.reader import open_trace
from traces.replay import open_replay
from traces.runlog import RunLog


@pytest.fixture(scope="module")
def log(dense_trace: Path) -> RunLog:
    replay = open_replay(open_trace(dense_trace))
    costs = cost_table(
        hardware_profile(content("hardware", "rtx4090")),
        model_profile(content("model", "qwen3-30b-a3b")),
        draft_profile(content("draft", "qwen3-4b-fp8")),
        8,
        trace_layers=replay.model.layers,
    )
    return simulate(replay, lru_cpu(), costs, SimulationSettings(gamma=2, slots=9))


def test_typical_pass_is_counted_and_decoding(log: RunLog) -> None:
    row = log.passes.set_index("pass_index").loc[typical_pass(log.passes)]
    assert row["phase"] == 1 and not row["warmup"]


def test_title_repeats_the_busy_shares(log: RunLog) -> None:
    index = typical_pass(log.passes)
    row = log.passes.set_index("pass_index").loc[index]
    cpu = sum(one.end_ns - one.begin_ns for one in pass_lanes(log, index) if one.lane == "cpu")
    share = cpu / (row["end_ns"] - row["begin_ns"])
    assert f"CPU {share:.0%}" in pass_lanes_figure(log).get_suptitle()


def test_waiting_for_copies_is_not_called_busy(dense_trace: Path) -> None:
    """A policy that fetches every miss leaves the GPU waiting; the title's share is the run log's
    own busy time."""
    replay = open_replay(open_trace(dense_trace))
    costs = cost_table(
        hardware_profile(content("hardware", "rtx4090")),
        model_profile(content("model", "qwen3-30b-a3b")),
        draft_profile(content("draft", "qwen3-4b-fp8")), 8, trace_layers=replay.model.layers,
    )  # fmt: skip
    log = simulate(replay, lru_fetch(), costs, SimulationSettings(gamma=2, slots=9))
    index = typical_pass(log.passes)
    row = log.passes.set_index("pass_index").loc[index]
    layers = log.layers[log.layers["pass_index"] == index]
    experts = int(layers["gpu_busy_ns"].sum())
    waiting = int((layers["gpu_end_ns"] - layers["gpu_begin_ns"]).sum()) - experts
    assert waiting > 0.1 * (row["end_ns"] - row["begin_ns"])
    others = sum(
        one.end_ns - one.begin_ns
        for one in pass_lanes(log, index)
        if one.lane == "gpu" and one.kind != "experts"
    )
    share = (experts + others) / (row["end_ns"] - row["begin_ns"])
    assert f"GPU {share:.0%}" in pass_lanes_figure(log).get_suptitle()


def test_spans_lie_inside_the_pass(log: RunLog) -> None:
    index = typical_pass(log.passes)
    row = log.passes.set_index("pass_index").loc[index]
    (axes,) = pass_lanes_figure(log, index).axes
    left, right = axes.get_xlim()
    assert left == 0 and right == pytest.approx((row["end_ns"] - row["begin_ns"]) / 1e6)
    edges = [path.vertices[:, 0] for bars in axes.collections for path in bars.get_paths()]
    assert min(edge.min() for edge in edges) >= 0
    assert max(edge.max() for edge in edges) <= right + 1e-9


def test_overlapping_time_counts_once() -> None:
    spans = [(0, 10), (5, 12), (20, 21)]
    assert busy_ns([Interval("link", *span, "", "demand") for span in spans]) == 13
