"""The third proof: in logical time, simulator and runtime make identical plans.

Logical time: whatever was put on the link has landed by the next decision. The runtime waits for
it; the simulator gets a cost table whose copies take next to no time.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from policies.costs import CostTable
from runtime.checkpoints import torch_dtype
from runtime.device import Device
from runtime.draft_model import open_draft_model
from runtime.engine import OffloadedEngine
from runtime.engine_settings import EngineSettings
from runtime.expert_layout import layout_of
from runtime.plans import PlanComparison, compare_plans, plans_of
from runtime.prompts import Prompt
from runtime.recorder import RecordingSettings, record_dense, record_windowed
from runtime.target_model import open_target_model
from simulator.reference import simulate
from simulator.settings import SimulationSettings
from traces.reader import open_trace
from traces.replay import open_replay

MILLISECOND = 1_000_000


def instant_copies(rows: int, expert_bytes: int) -> CostTable:
    """Copies take 1 ns, everything else a millisecond, for passes of up to `rows` rows."""
    table = np.full(rows + 1, MILLISECOND, np.int64)
    table[0] = 0
    return CostTable(
        cpu_ns=table, gpu_ns=table, dense_ns=table, context_ns_per_1024=0, router_ns=0, d2h_ns=0,
        dispatch_ns=0, return_ns=0, copy_latency_ns=0, copy_ns=1, contention=1024,
        draft_step_ns=MILLISECOND, pass_ns=MILLISECOND, decision_layer_ns=1, decision_leave_ns=1,
        decision_draft_ns=1, needs_ns=np.zeros(5, np.int64), expert_bytes=expert_bytes,
    )  # fmt: skip


def prove_logical_time(
    target: Path,
    draft: Path | None,
    prompts: Sequence[Prompt],
    make_policy: Callable[[], Any],
    device: Device,
    settings: EngineSettings,
    max_new_tokens: int,
) -> PlanComparison:
    """Record the prompts, simulate the recording, generate them in logical time, compare.

    settings: mode is overridden. Without a draft the recording is plain decoding. The device is
    closed at the end.
    """
    longest = max(len(prompt.tokens) for prompt in prompts)
    settings = replace(settings, mode="logical", paced=False)
    used = draft if settings.gamma else None
    plain = open_target_model(target, dtype=settings.dtype, expert_format=settings.experts)
    rows = max(longest, settings.gamma + 1)
    layout = layout_of(plain.facts, torch_dtype(settings.dtype), settings.experts)
    costs = instant_copies(rows, layout.expert_bytes)
    recording = RecordingSettings(
        workload="logical time", gamma=settings.gamma, sampling=settings.sampling,
        max_new_tokens=max_new_tokens, next_layer=True, router_weights=True,
        truncation=settings.truncation,
    )  # fmt: skip
    with TemporaryDirectory() as folder:
        proposer = open_draft_model(used, plain.facts, dtype=settings.dtype)
        if proposer is None:
            record_windowed(Path(folder) / "trace", plain, None, prompts, recording)
        else:
            record_dense(Path(folder) / "trace", plain, proposer, prompts, recording)
        replay = open_replay(open_trace(Path(folder) / "trace"))
        simulated = simulate(replay, make_policy(), costs, _simulation(settings))
    with OffloadedEngine(target, used, device, make_policy(), costs, settings) as engine:
        for prompt in prompts:
            for _ in engine.generate(prompt.tokens, max_new_tokens):
                pass
    return compare_plans(plans_of(simulated), plans_of(engine.runlog()))


def _simulation(settings: EngineSettings) -> SimulationSettings:
    return SimulationSettings(
        gamma=settings.gamma,
        slots=settings.slots,
        staging=settings.staging,
        launch="early" if settings.launch_early else "late",
        warmup_requests=0,
    )
