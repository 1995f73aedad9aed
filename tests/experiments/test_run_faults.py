"""Faults in mid-run: one line, exit code 2, no thread left, and a log that is readable so far."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from experiments.run_choice import RunChoice
from runtime import cpu_experts
from runtime.device import COPY
from runtime.standin import StandIn
from runtime.tiny import TinyShape, make_tiny_pair
from traces.runlog import read_runlog
from traces.runlog_schema import DECODE_PHASE

from .conftest import Outcome, Spac


def real_shortage(*_: Any) -> None:
    """What torch itself raises when it cannot get memory on a CPU."""
    torch.empty(2**62, dtype=torch.uint8)


def gpu_shortage(*_: Any) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nmore lines")


def bus_error(*_: Any) -> None:
    raise OSError("bus error")


class FailingStandIn(StandIn):
    """Its copy number `number` on the link fails, `on_stream` while it runs, else at the call."""

    def __init__(self, number: int, fault: Callable[..., None], on_stream: bool) -> None:
        super().__init__({})
        self._left, self._fault, self._on_stream = number, fault, on_stream

    def copy(self, dst: Any, src: Any, stream: Any, *others: Any, **named: Any) -> Any:
        if stream.name == COPY:
            self._left -= 1
            if self._left == 0:
                if self._on_stream:
                    return self.run(stream, self._fault)
                self._fault()
        return super().copy(dst, src, stream, *others, **named)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pair")
    make_tiny_pair(path, seed=3, shape=TinyShape(layers=3))
    return path


def words(pair: Path, policy: str = "lru_fetch") -> list[str]:
    return [
        "run", f"target={pair / 'target'}", f"draft_path={pair / 'draft'}", f"policy={policy}",
        "slots=5", "paced=false", "max_new_tokens=120", "prompt=w7 w8 w9",
    ]  # fmt: skip


def threads_of_engines() -> list[str]:
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith(("standin-", "cpu-experts"))]


def error_of(outcome: Outcome) -> str:
    """The one error line, the last of all."""
    assert outcome.code == 2, (outcome.code, outcome.err)
    lines = outcome.err.strip().splitlines()
    assert [line for line in lines if line.startswith("error: ")] == lines[-1:]
    assert "Traceback" not in outcome.err
    assert outcome.out.endswith("\n"), "the error begins on a line of its own"
    return lines[-1].removeprefix("error: ")


def check_what_is_left(spac: Spac, error: str) -> None:
    """`error` names the log; it holds whole passes, is marked, and `spac report` reads it."""
    assert threads_of_engines() == []
    folder = Path("outputs/run/latest")
    assert "finished passes are in" in error and error.endswith("marked incomplete")
    log = read_runlog(folder / "runlog")
    assert not log.info.complete
    assert (log.passes["phase"] == DECODE_PHASE).sum() > 0
    assert set(log.layers["pass_index"]) <= set(log.passes["pass_index"])
    whole = log.layers.groupby("pass_index").size()
    assert set(whole) == {3}, "every pass has all its layers"
    told = spac("report", str(folder))
    assert told.code == 0
    assert "this run broke off after" in told.out and "tokens per second" in told.out
    refused = spac("trace", "info", str(folder / "runlog"))
    assert "a run log" in refused.error


@pytest.mark.parametrize("on_stream", [True, False])
@pytest.mark.parametrize(
    ("fault", "said"),
    [(bus_error, "OSError: bus error"), (real_shortage, "memory"), (gpu_shortage, "memory")],
)
def test_a_copy_fails(
    fault: Callable[..., None], said: str, on_stream: bool, pair: Path, spac: Spac,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if fault is bus_error and not on_stream:
        pytest.skip("a device reports failed copies as DeviceError; anything else is a bug")
    monkeypatch.setattr(RunChoice, "device", lambda *_: FailingStandIn(90, fault, on_stream))
    error = error_of(spac(*words(pair)))
    assert said in error
    if said == "memory":
        assert "out of memory in mid-run" in error and "lower slots" in error
    check_what_is_left(spac, error)


@pytest.mark.parametrize(
    ("fault", "said"), [(bus_error, "CPU worker: OSError: bus error"), (real_shortage, "memory")]
)
def test_the_cpu_worker_raises(
    fault: Callable[..., None], said: str, pair: Path, spac: Spac, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, compute = [0], cpu_experts.expert_rows

    def sometimes(*arguments: Any, **more: Any) -> torch.Tensor:
        calls[0] += 1
        if calls[0] == 150:
            fault()
        return compute(*arguments, **more)

    monkeypatch.setattr(cpu_experts, "expert_rows", sometimes)
    error = error_of(spac(*words(pair, "all_cpu")))
    assert said in error
    check_what_is_left(spac, error)


def test_memory_runs_out_in_the_model(
    pair: Path, spac: Spac, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runtime.engine import OffloadedEngine

    opened = OffloadedEngine._build

    def build(engine: Any, *arguments: Any) -> None:
        opened(engine, *arguments)
        forward, calls = engine.target.forward, [0]

        def sometimes(*given: Any, **more: Any) -> torch.Tensor:
            calls[0] += 1
            if calls[0] == 12:
                real_shortage()
            return forward(*given, **more)

        engine.target.forward = sometimes

    monkeypatch.setattr(OffloadedEngine, "_build", build)
    error = error_of(spac(*words(pair)))
    assert "out of memory in mid-run (RuntimeError: " in error
    check_what_is_left(spac, error)


def test_a_bug_is_no_refusal(pair: Path, spac: Spac, monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(*_: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(RunChoice, "device", lambda *_: FailingStandIn(90, bug, False))
    with pytest.raises(ZeroDivisionError):
        spac(*words(pair))
    assert threads_of_engines() == []
    assert not read_runlog("outputs/run/latest/runlog").info.complete
