"""The kernels of policies.kernels as Python calls them, record by record: for policies in plain
Python, whose decision comes between the halves. Compiled only where one is used; composed policies
go through policies.records, whose calls cost less."""

from __future__ import annotations

from policies import kernels, ledger, validate
from policies.compile import kernel
from policies.records import decide_draft, decide_layer, decide_leaving


@kernel(allocates=False)
def open_layer(
    ledger, observation, plan, costs, layer, experts, weights, predicted, slots, generations, landed
):
    """policies.kernels.open_layer."""
    return kernels.open_layer(
        ledger, observation, plan, costs, layer, experts, weights, predicted, slots, generations,
        landed,
    )  # fmt: skip


@kernel(allocates=False)
def close_layer(ledger, observation, plan, layer, staging, launch_early, credits):
    """policies.kernels.close_layer."""
    return kernels.close_layer(ledger, observation, plan, layer, staging, launch_early, credits)


@kernel(allocates=False)
def new_demand_copies(plan):
    """policies.kernels.new_demand_copies."""
    return kernels.new_demand_copies(plan)


@kernel(allocates=False)
def open_moves(ledger, plan, cap, slots, generations, landed):
    """policies.kernels.open_moves."""
    return kernels.open_moves(ledger, plan, cap, slots, generations, landed)


@kernel(allocates=False)
def apply_prefetches(ledger, plan, credits):
    """policies.validate.apply_prefetches."""
    return validate.apply_prefetches(ledger, plan, credits)


@kernel(allocates=False)
def release_readers(records):
    """policies.ledger.release_readers of a ledger."""
    ledger.release_readers(records)


@kernel(allocates=False)
def enter_layer(
    program, state, costs, ledger, observation, plan, layer, staging, launch_early,
    experts, weights, predicted, slots, generations, landed,
):  # fmt: skip
    """policies.kernels.enter_layer."""
    return decide_layer(
        program, state, costs, ledger, observation, plan, layer, staging, launch_early, experts,
        weights, predicted, slots, generations, landed,
    )  # fmt: skip


@kernel(allocates=False)
def leave_layer(
    program, state, costs, ledger, observation, plan, layer, slots, generations, landed
):
    """policies.kernels.leave_layer."""
    return decide_leaving(
        program, state, costs, ledger, observation, plan, layer, slots, generations, landed
    )  # fmt: skip


@kernel(allocates=False)
def draft_step(
    program, state, costs, ledger, observation, plan, draft_ns_left, slots, generations, landed
):
    """policies.kernels.draft_step."""
    return decide_draft(
        program, state, costs, ledger, observation, plan, draft_ns_left, slots, generations, landed
    )  # fmt: skip
