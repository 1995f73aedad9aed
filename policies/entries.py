"""The kernels of policies.kernels and policies.passes as Python calls them, record by record, each
compiled only where it is used. Decisions and their halves are for policies in plain Python, whose
own decision comes between; composed ones go through policies.records, whose calls cost less."""

from __future__ import annotations

from policies import kernels, passes, validate
from policies.by_reference import by_reference
from policies.compile import kernel
from policies.ledger import release_readers as release
from policies.observation import sliced


@kernel(allocates=False)
def open_layer(
    ledger, observation, plan, costs, layer, experts, weights, predicted, slots, generations, landed
):
    """policies.kernels.open_layer."""
    return kernels.open_layer(
        by_reference(ledger), by_reference(observation), by_reference(plan), by_reference(costs),
        layer, experts, weights, predicted, slots, generations, landed,
    )  # fmt: skip


@kernel(allocates=False)
def close_layer(ledger, observation, plan, layer, staging, launch_early, credits):
    """policies.kernels.close_layer."""
    return kernels.close_layer(
        by_reference(ledger), by_reference(observation), by_reference(plan), layer, staging,
        launch_early, credits,
    )  # fmt: skip


@kernel(allocates=False)
def new_demand_copies(plan):
    """policies.kernels.new_demand_copies."""
    return kernels.new_demand_copies(by_reference(plan))


@kernel(allocates=False)
def open_moves(ledger, plan, cap, slots, generations, landed):
    """policies.kernels.open_moves."""
    return kernels.open_moves(
        by_reference(ledger), by_reference(plan), cap, slots, generations, landed
    )


@kernel(allocates=False)
def apply_prefetches(ledger, plan, credits):
    """policies.validate.apply_prefetches."""
    return validate.apply_prefetches(by_reference(ledger), by_reference(plan), credits)


@kernel(allocates=False)
def release_readers(records):
    """policies.ledger.release_readers of a ledger."""
    release(by_reference(records))


@kernel(allocates=False)
def enter_layer(
    program, state, costs, ledger, observation, plan, layer, staging, launch_early,
    experts, weights, predicted, slots, generations, landed,
):  # fmt: skip
    """policies.kernels.enter_layer."""
    return kernels.enter_layer(
        program, by_reference(state), by_reference(costs), by_reference(ledger),
        by_reference(observation), by_reference(plan), layer, staging, launch_early, experts,
        weights, sliced(predicted), slots, generations, landed,
    )  # fmt: skip


@kernel(allocates=False)
def leave_layer(
    program, state, costs, ledger, observation, plan, layer, slots, generations, landed
):
    """policies.kernels.leave_layer."""
    return kernels.leave_layer(
        program, by_reference(state), by_reference(costs), by_reference(ledger),
        by_reference(observation), by_reference(plan), layer, slots, generations, landed,
    )  # fmt: skip


@kernel(allocates=False)
def draft_step(
    program, state, costs, ledger, observation, plan, draft_ns_left, slots, generations, landed
):
    """policies.kernels.draft_step."""
    return kernels.draft_step(
        program, by_reference(state), by_reference(costs), by_reference(ledger),
        by_reference(observation), by_reference(plan), draft_ns_left, slots, generations,
        landed,
    )  # fmt: skip


@kernel(allocates=False)
def start_request(program, state):
    """policies.passes.start_request."""
    passes.start_request(program, by_reference(state))


@kernel(allocates=False)
def start_pass(program, state, costs, gamma_max, last_token):
    """policies.passes.start_pass."""
    return passes.start_pass(
        program, by_reference(state), by_reference(costs), gamma_max, last_token
    )


@kernel(allocates=False)
def note_token(program, state, token):
    """policies.passes.note_token."""
    passes.note_token(program, by_reference(state), token)


@kernel(allocates=False)
def end_pass(program, state, accepted):
    """policies.passes.end_pass."""
    passes.end_pass(program, by_reference(state), accepted)
