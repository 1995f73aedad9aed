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
from runtime.engine_settings import EngineSettings
from runtime.forced_engine import ForcedEngine
from runtime.random_model import RandomModel
from traces.replay import Replay
from traces.runlog import RunLog

IntArray = NDArray[np.int64]
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


def layer_parts(log: RunLog) -> dict[str, list[float]]:
    """Samples of everything in a layer that is no expert, in ns. "return" and "sum": from the end
    of the lane that ended last, CPU or GPU, to the join.
    """
    layers, passes = log.layers, log.passes
    on_cpu = layers["cpu_end_ns"] > layers["cpu_begin_ns"]
    on_gpu = layers["gpu_end_ns"] > layers["gpu_begin_ns"]
    cpu_last = on_cpu & (layers["cpu_end_ns"] >= layers["gpu_end_ns"])
    resident = layers["placement"].map(lambda placed: bool((np.asarray(placed) == GPU).any()))
    last = layers.groupby("pass_index")["join_ns"].max()
    ends = passes.set_index("pass_index")["end_ns"]
    drafted = passes[passes["gamma"] > 0]
    return {
        "dense": _list(layers["t1_ns"] - layers["t0_ns"]),
        "message": _list(layers["t2_ns"] - layers["t1_ns"] - layers["decision_ns"]),
        "start": _list((layers["gpu_begin_ns"] - layers["t2_ns"])[on_gpu & resident]),
        "dispatch": _list((layers["cpu_begin_ns"] - layers["t2_ns"])[on_cpu]),
        "return": _list((layers["join_ns"] - layers["cpu_end_ns"])[cpu_last]),
        "sum": _list((layers["join_ns"] - layers["gpu_end_ns"])[on_gpu & ~cpu_last]),
        "draft": _list((drafted["draft_end_ns"] - drafted["begin_ns"]) / drafted["gamma"]),
        "head": _list((ends - last).dropna()),
        "decision": _list(layers["decision_ns"]),
        "leave decision": _list(layers["leave_decision_ns"]),
        "draft decision": _list(log.drafts["decision_ns"]),
    }


def level(log: RunLog, lane: str, times: IntArray) -> float:
    """By how much a lane's experts, mixed as a policy mixes them, take longer than `times` (int64
    by tokens) says: what two lanes and the link cost each other on one machine.
    """
    placements = (CPU,) if lane == "cpu" else (GPU, FETCH, STREAM)
    expected = measured = 0.0
    for row in log.layers.itertuples():
        chosen = np.isin(np.asarray(row.placement), placements)
        expected += float(times[np.asarray(row.counts)[chosen]].sum())
        measured += float(row.cpu_busy_ns if lane == "cpu" else row.gpu_busy_ns)
    return measured / expected if expected else 1.0


def link_shares(log: RunLog) -> tuple[float, float]:
    """(CPU time of all layers, time in it with bytes on the link), in ns."""
    copies = log.copies.sort_values("begin_ns")
    begins, ends = copies["begin_ns"].to_numpy(), copies["landing_ns"].to_numpy()
    work = busy = 0.0
    for begin, end in zip(log.layers["cpu_begin_ns"], log.layers["cpu_end_ns"], strict=True):
        work += end - begin
        busy += float(np.clip(np.minimum(ends, end) - np.maximum(begins, begin), 0, None).sum())
    return work, busy


def contention(alone_ns: float, loaded: RunLog) -> int | None:
    """q of 1024: the rate of CPU work while the link is busy. alone_ns: time of the same layers
    without traffic. None if there was too little traffic to tell.
    """
    time, busy = link_shares(loaded)
    if busy < 0.2 * time:
        return None
    work = alone_ns * len(loaded.layers)
    return int(np.clip(round(1024 * (work - (time - busy)) / busy), 1, 1024))


def _part(log: RunLog, layers: pd.DataFrame, first_pass: int) -> RunLog:
    passes = log.passes[log.passes["pass_index"] >= first_pass]
    return RunLog(log.info, passes, layers, log.drafts, log.copies)


def _list(values: pd.Series) -> list[float]:
    return [max(0.0, float(value)) for value in values]


def _name(model: RandomModel) -> str:
    return str(model.dtype).removeprefix("torch.")
