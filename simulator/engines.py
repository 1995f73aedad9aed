"""Which engine plays a run: the compiled one for composed policies, the reference for plain Python.

Both give the same run log; `auto` picks and says which and why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from policies.composed import ComposedPolicy
from policies.costs import CostTable
from policies.errors import UserError
from simulator.compiled import simulate_compiled
from simulator.reference import simulate as simulate_reference
from simulator.settings import RunLabels, SimulationSettings
from traces.replay import Replay
from traces.runlog import RunLog

Engine = Literal["auto", "reference", "compiled"]


@dataclass(frozen=True)
class EngineChoice:
    """`engine`: "reference" or "compiled"; `reason`: one line in plain words."""

    engine: str
    reason: str


def choose_engine(policy: Any, engine: Engine = "auto") -> EngineChoice:
    """The engine that will play `policy`; UserError if `engine` cannot."""
    if engine not in get_args(Engine):
        raise UserError(f"engine={engine}: there are {', '.join(get_args(Engine))}")
    composed = isinstance(policy, ComposedPolicy)
    if engine == "compiled" and not composed:
        raise UserError(
            f"engine=compiled: policy {policy.name} is plain Python, which only engine=reference "
            "can call; use that, or engine=auto"
        )
    if engine != "auto":
        return EngineChoice(engine, "as asked")
    if composed:
        return EngineChoice("compiled", f"policy {policy.name} is made of compiled parts")
    return EngineChoice("reference", f"policy {policy.name} is plain Python")


def simulate(
    replay: Replay,
    policy: Any,
    costs: CostTable,
    settings: SimulationSettings,
    labels: RunLabels | None = None,
    path: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    engine: Engine = "auto",
) -> RunLog:
    """Play `replay` under `policy`; see simulator.reference.simulate. The run log names the
    engine."""
    chosen = choose_engine(policy, engine)
    play = simulate_compiled if chosen.engine == "compiled" else simulate_reference
    return play(replay, policy, costs, settings, labels, path, progress)
