"""run.json of a simulated run, the same for both engines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from policies.costs import CostTable
from simulator.settings import RunLabels, SimulationSettings, run_notes
from traces.replay import Replay
from traces.runlog import RunInfo


def run_info(
    replay: Replay,
    policy: Any,
    costs: CostTable,
    settings: SimulationSettings,
    labels: RunLabels,
    engine: str,
    observed: dict[str, str],
) -> RunInfo:
    """Description of a run of `policy` by `engine`; `observed`: notes of settle_wishes."""
    requests = replay.request_ids[: settings.requests]
    notes = run_notes(settings, labels, replay.model) | observed
    if any(replay.prefill(request) is None for request in requests):
        notes["prefill"] = "not in the trace, so its time is 0"
    model = replace(
        replay.model, name=labels.model or replay.model.name, expert_bytes=costs.expert_bytes
    )
    return RunInfo(
        kind="simulated", policy=policy.name, policy_params=policy.parameters(), model=model,
        slots=settings.slots, staging=settings.staging, hardware=labels.hardware, engine=engine,
        trace=labels.trace, trace_digest=labels.trace_digest, expert_bytes=costs.expert_bytes,
        decision_source=labels.decision_source, approximate=replay.approximate, notes=notes,
    )  # fmt: skip
