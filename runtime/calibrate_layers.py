"""Measures layers where they run: an engine with forced routing plays made-up passes, and medians
are taken from its run log. So every overhead of the engine is in the numbers.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from policies.api import CPU, FETCH, GPU, STREAM
from policies.costs import CostTable
from runtime.calibration_policy import CalibrationPolicy
from runtime.calibration_replay import CalibrationReplay
from runtime.contention import WHOLE
from runtime.engine_settings import EngineSettings
from runtime.forced_engine import ForcedEngine
from runtime.random_model import RandomModel
from traces.replay import Replay
from traces.runlog import RunLog

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
ENOUGH_TRAFFIC = 0.2  # share of the CPU's time
SKIPPED = 2  # first passes: caches of the machine are cold, code is compiled


@dataclass(frozen=True)
class Bench:
    """What the runs of a calibration share. `guess`: a cost table, on which only the credits of
    policies depend; paced: the stand-in is padded to it, to see whether calibration finds it again.
    """

    model: RandomModel
    guess: CostTable
    slots: int
    staging: int
    passes: int
    paced: bool = False

    def play(self, replay: Replay, policy: Any, gamma: int) -> RunLog:
        """One run, as fast as the machine can."""
        settings = EngineSettings(
            slots=self.slots, staging=self.staging, gamma=gamma, dtype=_name(self.model),
            paced=self.paced,
        )  # fmt: skip
        with ForcedEngine(self.model, replay, policy, self.guess, settings) as engine:
            engine.play()
        return engine.runlog()

    def uniform(self, policy: CalibrationPolicy, rows: int, context: int = 64) -> RunLog:
        """Every active expert has `rows` tokens. On the GPU, only as many experts are used as have
        a slot.
        """
        info = self.model.shape.info(self.model.dtype)
        fill, span = 0, info.experts
        if policy.lane == "gpu":
            span = min(span, max(info.top_k, self.slots // info.layers))
            span -= span % info.top_k
            fill = -(-span // info.top_k)
        count = SKIPPED + fill + self.passes
        replay = CalibrationReplay(info, rows, count, span, context)
        log = self.play(replay, policy, rows - 1)
        layers = log.layers[log.layers["pass_index"] >= SKIPPED + fill]
        wanted = GPU if policy.lane == "gpu" else CPU
        whole = layers["placement"].map(lambda placed: bool((np.asarray(placed) == wanted).all()))
        return _part(log, layers[whole], SKIPPED + fill)


def per_expert_ns(log: RunLog, lane: str) -> list[float]:
    """Time of one expert in each layer, of a run in which all are alike."""
    number = log.layers["experts"].map(len)
    return list((log.layers[f"{lane}_busy_ns"] / number).to_numpy(np.float64))


def layer_parts(log: RunLog, leave_share: float = 0.0) -> dict[str, list[float]]:
    """Samples of everything in a layer that is no expert, in ns. "dense": without that share of the
    decision after the join before; "return" and "sum": from the end of the lane that ended last,
    CPU or GPU, to the join.
    """
    layers, passes = log.layers, log.passes
    on_cpu = layers["cpu_end_ns"] > layers["cpu_begin_ns"]
    on_gpu = layers["gpu_end_ns"] > layers["gpu_begin_ns"]
    cpu_last = on_cpu & (layers["cpu_end_ns"] >= layers["gpu_end_ns"])
    last = layers.groupby("pass_index")["join_ns"].max()
    ends = passes.set_index("pass_index")["end_ns"]
    drafted = passes[passes["gamma"] > 0]
    return {
        "dense": _list(layers["t1_ns"] - layers["t0_ns"] - leave_share * _leave_before(layers)),
        "message": _list(layers["t2_ns"] - layers["t1_ns"] - layers["decision_ns"]),
        "dispatch": _list((layers["cpu_begin_ns"] - layers["t2_ns"])[on_cpu]),
        "return": _list((layers["join_ns"] - layers["cpu_end_ns"])[cpu_last]),
        "sum": _list((layers["join_ns"] - layers["gpu_end_ns"])[on_gpu & ~cpu_last]),
        "draft": _list((drafted["draft_end_ns"] - drafted["begin_ns"]) / drafted["gamma"]),
        "head": _list((ends - last).dropna()),
        "decision": _list(layers["decision_ns"]),
        "leave decision": _list(layers["leave_decision_ns"]),
        "draft decision": _list(log.drafts["decision_ns"]),
    }


def level(log: RunLog, lane: str, times: IntArray, contention: int = WHOLE) -> float | None:
    """By how much a lane's experts, mixed as a policy mixes them, take longer than `times` (int64
    by tokens) says: what two lanes cost each other on one machine. What the link costs the CPU lane
    is told by `contention` and not counted again; the GPU lane's start is counted as its work. None
    for a lane without work.
    """
    placements = (CPU,) if lane == "cpu" else (GPU, FETCH, STREAM)
    chosen = [np.isin(np.asarray(placed), placements) for placed in log.layers["placement"]]
    counts = [
        np.asarray(one)[which] for one, which in zip(log.layers["counts"], chosen, strict=True)
    ]
    expected = float(sum(times[one].sum() for one in counts))
    if not expected:
        return None
    if lane == "gpu":
        return float(log.layers["gpu_busy_ns"].sum() + _starts(log.layers).sum()) / expected
    work, busy = (float(one.sum()) for one in link_shares(log))
    return (work - busy * (1.0 - contention / WHOLE)) / expected


def held_up(alone: RunLog, paused: RunLog) -> float:
    """Share of the decision after a join by which the next layer is later: 1 where the host that
    decides also queues or computes the layer, 0 where it runs ahead of the device.
    """
    leave, dense = [], []
    for log in (alone, paused):
        before = _leave_before(log.layers)
        follows = before > 0
        leave.append(float(before[follows].median()))
        dense.append(float((log.layers["t1_ns"] - log.layers["t0_ns"])[follows].median()))
    longer = leave[1] - leave[0]
    return float(np.clip((dense[1] - dense[0]) / longer, 0.0, 1.0)) if longer > 0 else 0.0


def _leave_before(layers: pd.DataFrame) -> pd.Series:
    """The decision at the end of the layer before, in ns; 0 for the first of a pass."""
    before = layers.shift(1)
    follows = (before["pass_index"] == layers["pass_index"]) & (
        before["layer"] == layers["layer"] - 1
    )
    return before["leave_decision_ns"].where(follows, 0.0)


def _starts(layers: pd.DataFrame) -> pd.Series:
    """From the decision to the begin of the GPU lane, where it has residents to begin with."""
    resident = layers["placement"].map(lambda placed: bool((np.asarray(placed) == GPU).any()))
    return (layers["gpu_begin_ns"] - layers["t2_ns"])[resident].clip(lower=0)


def link_shares(log: RunLog) -> tuple[FloatArray, FloatArray]:
    """(CPU time, time in it with bytes on the link) of each layer, float64, in ns."""
    copies = log.copies.sort_values("begin_ns")
    begins, ends = copies["begin_ns"].to_numpy(), copies["landing_ns"].to_numpy()
    lanes = zip(log.layers["cpu_begin_ns"], log.layers["cpu_end_ns"], strict=True)
    work = (log.layers["cpu_end_ns"] - log.layers["cpu_begin_ns"]).to_numpy(np.float64)
    busy = [np.clip(np.minimum(ends, end) - np.maximum(begins, begin), 0, None).sum()
            for begin, end in lanes]  # fmt: skip
    return work, np.array(busy, np.float64)


def contention(alone_ns: float, loaded: RunLog) -> int | None:
    """q of 1024: the rate of CPU work while the link is busy; the median of the layers, so that one
    that the machine stopped does not tell. alone_ns: time of the same layer without traffic. None
    if most layers had too little of it.
    """
    time, busy = link_shares(loaded)
    told = busy >= ENOUGH_TRAFFIC * time
    if told.sum() < max(1, len(told) / 2):
        return None
    rates = (alone_ns - (time - busy)[told]) / busy[told]
    return int(np.clip(round(WHOLE * float(np.median(rates))), 1, WHOLE))


def _part(log: RunLog, layers: pd.DataFrame, first_pass: int) -> RunLog:
    passes = log.passes[log.passes["pass_index"] >= first_pass]
    return RunLog(log.info, passes, layers, log.drafts, log.copies)


def _list(values: pd.Series) -> list[float]:
    return [max(0.0, float(value)) for value in values]


def _name(model: RandomModel) -> str:
    return str(model.dtype).removeprefix("torch.")
