"""Refusals before a run: what trace, cost table and policy cannot do together."""

from __future__ import annotations

from typing import Any

from policies.composed import ComposedPolicy
from policies.costs import CostTable
from policies.errors import UserError
from policies.parts import Cheaper, StreamMisses
from simulator.settings import SimulationSettings
from traces.replay import Replay


def rows_needed(replay: Replay, gamma: int) -> int:
    """The longest pass of a run: the longest prefill or the verify window."""
    prompts = (len(replay.prompt(request)) for request in replay.request_ids)
    return max(gamma + 1, *prompts)


def check_requirements(
    replay: Replay, policy: Any, costs: CostTable, settings: SimulationSettings
) -> None:
    """UserError in plain words if the run cannot be played."""
    there = len(replay.request_ids)
    if settings.requests is not None and settings.requests > there:
        raise UserError(
            f"requests={settings.requests}: this trace has {there}; ask for at most that many, or "
            "leave requests out for all"
        )
    _check_staging(policy, settings)
    check_gamma(replay, settings.gamma)
    rows, longest = len(costs.dense_ns) - 1, rows_needed(replay, settings.gamma)
    if longest > rows:
        raise UserError(
            f"the cost table ends at {rows} rows and this trace has passes of {longest}; "
            f"build it with rows_max={longest}"
        )
    _check_needs(replay, policy)


def check_gamma(replay: Replay, gamma: int) -> None:
    """UserError if the trace cannot be played at this window."""
    if gamma > replay.gamma_limit:
        raise UserError(
            f"gamma={gamma}: this {replay.kind} trace goes up to {replay.gamma_limit}; "
            "lower it, or record again with a larger gamma_max"
        )
    if replay.fixed_gamma is not None and gamma != replay.fixed_gamma:
        raise UserError(
            f"gamma={gamma}: this {replay.kind} trace was recorded at gamma "
            f"{replay.fixed_gamma} and can be played at no other"
        )


def _check_staging(policy: Any, settings: SimulationSettings) -> None:
    """A policy whose rule for misses is to stream them would do something else without buffers."""
    streams = isinstance(policy, ComposedPolicy) and isinstance(
        policy.balancer, StreamMisses | Cheaper
    )
    if streams and settings.staging == 0:
        raise UserError(
            f"policy {policy.name} streams misses, and staging=0 leaves no buffer to stream "
            "through; give staging=1 or more, or choose another policy"
        )


def _check_needs(replay: Replay, policy: Any) -> None:
    for need in sorted(policy.needs):
        if need == "draft_tokens":
            missing = "its drafted tokens" if replay.kind == "text" else None
        else:
            column = "router_weights" if need == "router_mass" else need
            missing = None if column in replay.columns else f"the column {column}"
        if missing is not None:
            raise UserError(
                f"policy {policy.name} needs {need}, and this {replay.kind} trace lacks {missing}; "
                "record again with it, or choose another policy"
            )
