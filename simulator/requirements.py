"""Refusals before a run: what trace, cost table and policy cannot do together."""

from __future__ import annotations

from typing import Any

from policies.costs import CostTable
from policies.errors import UserError
from policies.streaming import check_staging
from simulator.settings import SimulationSettings
from traces.replay import Replay
from traces.rows import UNKNOWN_TOKEN


def rows_needed(replay: Replay, gamma: int) -> int:
    """The longest pass of a run: the longest prefill or the verify window."""
    return max(gamma + 1, *map(replay.prompt_length, replay.request_ids))


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
    check_staging(policy, settings.staging)
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


def missing_observation(replay: Replay, need: str) -> str | None:
    """What the trace lacks to serve `need`, or None. On a text trace the text stands in for the
    drafted tokens, as its rows do for theirs; tokens may be unknown there."""
    if need == "draft_tokens":
        known = replay.kind != "text" or _first_token(replay) != UNKNOWN_TOKEN
        return None if known else "tokens"
    column = "router_weights" if need == "router_mass" else need
    return None if column in replay.columns else f"the column {column}"


def settle_wishes(replay: Replay, policy: Any) -> dict[str, str]:
    """Withhold from `policy` the wishes that the trace cannot serve; returns what run.json has to
    say about observations."""
    notes = {}
    wishes = sorted(getattr(policy, "wishes", ()))
    lacking = {need: missing_observation(replay, need) for need in wishes}
    withheld = [need for need in wishes if lacking[need] is not None]
    if wishes:
        policy.do_without(frozenset(withheld))  # nothing of an earlier trace stays withheld
    if withheld:
        reasons = (f"{need} (no {lacking[need]} in the trace)" for need in withheld)
        notes["played_without"] = ", ".join(reasons)
    if "draft_tokens" in policy.needs and replay.kind == "text":
        notes["draft_tokens"] = "the accepted text stands in for rejected drafts: approximate"
    return notes


def _first_token(replay: Replay) -> int:
    request = replay.request_ids[0]
    return int(replay.window(request, replay.first(request), 0).tokens[0])


def _check_needs(replay: Replay, policy: Any) -> None:
    insisted = policy.needs - getattr(policy, "wishes", frozenset())
    for need in sorted(insisted):
        missing = missing_observation(replay, need)
        if missing is not None:
            raise UserError(
                f"policy {policy.name} needs {need}, and this {replay.kind} trace lacks {missing}; "
                "record again with it, or choose another policy"
            )
