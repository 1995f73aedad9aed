"""The compiled engine: the same run as simulator.reference, orders of magnitude faster.

Policy, ledger and costs are the very kernels that Session calls; the physics is written a second
time, as recurrences over integer nanoseconds (compiled_pass, compiled_layer, compiled_link), and
shares nothing with the SimPy engine. Equality of the two is tested to the nanosecond.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from policies.composed import ComposedPolicy
from policies.costs import CostTable
from simulator.compiled_log import copy_columns, draft_columns, layer_columns, pass_columns
from simulator.compiled_run import Chunk, play_run
from simulator.requirements import check_requirements, settle_wishes
from simulator.run_labels import run_info
from simulator.settings import RunLabels, SimulationSettings
from traces.replay import Replay
from traces.runlog import RunLog, RunLogBuilder, read_runlog

ENGINE = "compiled"
Progress = Callable[[int, int], None]


def simulate_compiled(
    replay: Replay,
    policy: ComposedPolicy,
    costs: CostTable,
    settings: SimulationSettings,
    labels: RunLabels | None = None,
    path: str | Path | None = None,
    progress: Progress | None = None,
) -> RunLog:
    """As simulator.reference.simulate, except that `progress` is called after some passes."""
    costs.validate()
    check_requirements(replay, policy, costs, settings)
    observed = settle_wishes(replay, policy)
    info = run_info(replay, policy, costs, settings, labels or RunLabels(), ENGINE, observed)
    builder = RunLogBuilder(info, path)

    def write(chunk: Chunk) -> None:
        builder.add_columns("passes", pass_columns(chunk.buffers))
        builder.add_columns("layers", layer_columns(chunk.buffers))
        builder.add_columns("drafts", draft_columns(chunk.buffers))
        copies = copy_columns(chunk.machine, chunk.first_copy, costs.expert_bytes)
        builder.add_columns("copies", copies)
        if path is not None:
            builder.flush()

    play_run(replay, policy, costs, settings, write, progress)
    if path is None:
        return builder.build()
    builder.close()
    return read_runlog(path)
