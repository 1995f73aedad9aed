"""The engine as a whole: logs, limits, refusals, and what is left after something broke."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import LoadedPair
from offload_setup import ForcedPolicy, engine_threads, tiny_engine

from policies.errors import UserError
from policies.session import IllegalPlan
from policies.zoo.belady import belady
from policies.zoo.lru_fetch import lru_fetch
from runtime.device import COPY, DeviceError
from runtime.engine_settings import EngineSettings, slots_of_ratio
from runtime.observations import FILE_NAME, read_observations
from runtime.standin import StandIn
from traces.metrics import metrics
from traces.runlog import read_runlog
from traces.runlog_schema import DECODE_PHASE

PROMPT = [10, 20, 30, 40, 50]


def generate(engine: Any, tokens: int = 24, warmup: bool = False) -> list[int]:
    return [t for block in engine.generate(PROMPT, tokens, warmup) for t in block]


def test_a_run_is_logged_and_measured(tiny: LoadedPair, tmp_path: Path) -> None:
    with tiny_engine(tiny.path, lru_fetch(), log=tmp_path / "run", slots=5) as engine:
        generate(engine, warmup=True)
        text = generate(engine)
    log = read_runlog(tmp_path / "run")
    figures = metrics(log)
    assert log.info.complete
    assert log.info.kind == "measured"
    assert log.info.policy_params == lru_fetch().parameters()
    assert figures.committed_tokens == len(text) - 1  # the first comes from prefill
    assert figures.requests == 1
    assert figures.tokens_per_second > 0
    assert 0 < figures.hit_rate_per_expert < 1
    counted = log.passes[~log.passes["warmup"] & (log.passes["phase"] == DECODE_PHASE)]
    copies = int(log.copies["pass_index"].isin(counted["pass_index"]).sum())
    assert figures.bytes_copied == engine.layout.expert_bytes * copies
    times = log.layers
    order = ["t0_ns", "t1_ns", "t2_ns", "join_ns"]
    assert all((times[a] <= times[b]).all() for a, b in pairwise(order))
    for lane in ("gpu", "cpu"):
        assert (times[f"{lane}_begin_ns"] <= times[f"{lane}_end_ns"]).all()
        assert (times[f"{lane}_end_ns"] <= times["join_ns"]).all()
    assert (log.copies["issue_ns"] <= log.copies["begin_ns"]).all()
    assert (log.copies["begin_ns"] <= log.copies["landing_ns"]).all()
    assert len(read_observations(tmp_path / "run" / FILE_NAME)) == len(engine.observations)


def test_slots_and_policy_state_survive_requests(tiny: LoadedPair) -> None:
    with tiny_engine(tiny.path, lru_fetch(), slots=24) as engine:
        generate(engine)
        before = engine.session.ledger.slot_generation.copy()
        resident = int((engine.session.ledger.expert_slot >= 0).sum())
        generate(engine)
    after = engine.session.ledger.slot_generation
    assert resident > 0
    assert (after[:24] >= before[:24]).all()
    assert int((engine.session.ledger.expert_slot >= 0).sum()) >= resident


def test_prefill_leaves_the_slots_alone(tiny: LoadedPair) -> None:
    with tiny_engine(tiny.path, lru_fetch(), slots=24, cpu_ns=10**9) as engine:
        stream = engine.generate(PROMPT, 24)
        next(stream)
        assert (engine.session.ledger.slot_generation[:24] == 0).all()
        list(stream)


def test_a_reader_who_stops_early_is_no_failure(tiny: LoadedPair) -> None:
    with tiny_engine(tiny.path, lru_fetch()) as engine:
        stream = engine.generate(PROMPT, 24)
        next(stream)
        next(stream)
        stream.close()
        assert len(generate(engine)) > 1


class BreakingStandIn(StandIn):
    """Fails one copy on the link, or interrupts the driver at one."""

    def __init__(self, number: int, error: type[BaseException]) -> None:
        super().__init__({})
        self._left, self._error_type = number, error

    def copy(self, dst: Any, src: Any, stream: Any, *others: Any, **named: Any) -> Any:
        if stream is self.stream(COPY):
            self._left -= 1
            if self._left == 0 and self._error_type is KeyboardInterrupt:
                raise KeyboardInterrupt
            if self._left == 0:
                return self.run(stream, self._fail)
        return super().copy(dst, src, stream, *others, **named)

    def _fail(self) -> None:
        raise self._error_type("injected")


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_after_a_failed_copy_or_ctrl_c_threads_end_and_whole_passes_are_kept(
    error: type[BaseException], tiny: LoadedPair, tmp_path: Path
) -> None:
    device = BreakingStandIn(40, error)
    seen: list[int] = []
    expected = DeviceError if error is OSError else error
    with (
        pytest.raises(expected, match="injected" if error is OSError else None),
        tiny_engine(tiny.path, lru_fetch(), device, tmp_path / "run", slots=4) as engine,
    ):
        for block in engine.generate(PROMPT, 60):
            seen += block
    assert engine_threads() == []
    log = read_runlog(tmp_path / "run")
    assert not log.info.complete
    assert len(log.passes) > 1
    assert int(log.passes["committed"].sum()) >= len(seen)
    assert set(log.layers["pass_index"]) <= set(log.passes["pass_index"])
    assert len(read_observations(tmp_path / "run" / FILE_NAME)) > 0
    with pytest.raises(DeviceError, match="closed"):
        generate(engine)


def test_a_failing_cpu_expert_is_reported(tiny: LoadedPair) -> None:
    with (
        pytest.raises(DeviceError, match="CPU worker: IndexError"),
        tiny_engine(tiny.path, ForcedPolicy("CPU"), staging=0) as engine,
    ):
        engine.arena.rows = engine.arena.rows[:5]
        generate(engine)
    assert engine_threads() == []


class Rogue(ForcedPolicy):
    """Says GPU whatever is resident."""

    def _choose(self, key: int, view: Any, reserved: set[int]) -> tuple[int, int]:
        return 1, -1


def test_an_illegal_plan_stops_the_run_with_its_reason(tiny: LoadedPair) -> None:
    with (
        pytest.raises(IllegalPlan, match="placed on the GPU but not resident"),
        tiny_engine(tiny.path, Rogue("GPU")) as engine,
    ):
        generate(engine)
    assert engine_threads() == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slots": 0}, "slots=0"),
        ({"slots": 25}, "must be 1..24"),
        ({"dtype": "float8"}, "dtype=float8"),
    ],
)
def test_impossible_sizes_are_refused(
    changes: dict[str, Any], message: str, tiny: LoadedPair
) -> None:
    with pytest.raises(UserError, match=message):
        tiny_engine(tiny.path, lru_fetch(), **changes)
    assert engine_threads() == []


def test_a_clairvoyant_policy_is_refused(tiny: LoadedPair) -> None:
    with pytest.raises(UserError, match="only the simulator"):
        tiny_engine(tiny.path, belady())


def test_too_small_a_device_is_refused_before_loading(tiny: LoadedPair) -> None:
    with pytest.raises(UserError, match="device memory"):
        tiny_engine(tiny.path, lru_fetch(), StandIn({}, device_bytes=1_000))


def test_prompts_that_do_not_fit_are_refused(tiny: LoadedPair) -> None:
    with tiny_engine(tiny.path, lru_fetch()) as engine:
        with pytest.raises(UserError, match="empty"):
            next(engine.generate([], 5))
        with pytest.raises(UserError, match="vocabulary"):
            next(engine.generate([99], 5))
        with pytest.raises(UserError, match="positions"):
            next(engine.generate(PROMPT, 600))


def test_an_existing_log_is_not_overwritten(tiny: LoadedPair, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="exists"):
        tiny_engine(tiny.path, lru_fetch(), log=tmp_path / "run")


def test_bfloat16_runs_and_stays_finite(tiny: LoadedPair) -> None:
    with tiny_engine(tiny.path, lru_fetch(), dtype="bfloat16") as engine:
        assert len(generate(engine)) > 1
        assert engine.target.module.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mode": "fast"}, "mode=fast"),
        ({"staging": -1}, "staging=-1"),
        ({"gamma": -1}, "gamma=-1"),
    ],
)
def test_settings_are_checked_at_once(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        EngineSettings(slots=4, **changes)


@pytest.mark.parametrize(("ratio", "slots"), [(1.0, 512), (0.17, 87), (0.29, 148), (0.002, 1)])
def test_slots_of_a_ratio(ratio: float, slots: int) -> None:
    assert slots_of_ratio(ratio, 8, 64) == slots


@pytest.mark.parametrize("ratio", [0.0, -1, 1.01, 0.001])
def test_impossible_ratios(ratio: float) -> None:
    with pytest.raises(UserError, match="cache_ratio"):
        slots_of_ratio(ratio, 8, 64)
