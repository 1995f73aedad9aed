"""MoE-SpeQ's governor (arXiv 2511.14102): the draft length that amortises a pass's copies best.

Its roofline is a model, not a measurement: a pass takes the drafting plus the larger of compute and
copies, and both follow from the number of distinct experts that so many rows activate. The miss
rate is the running mean of what was seen.
"""

from __future__ import annotations

from policies.compile import inner
from policies.state import ACTIVE, GAMMA, MISSES, TOP_K
from policies.windows.acceptance import expected_tokens


@inner
def distinct_experts(experts, top_k, rows):
    """Expected number of distinct experts of `rows` independent rows, uniform routing."""
    return experts * (1.0 - (1.0 - top_k / experts) ** rows)


@inner
def pass_roofline_ns(state, costs, gamma):
    """Modelled time of a pass with `gamma` drafted tokens."""
    layers, experts = state.utility.shape
    top_k = state.clock[TOP_K]
    rows = gamma + 1
    # Real routing repeats itself: scale the model to the mean seen at the present window.
    active = distinct_experts(experts, top_k, rows)
    seen = distinct_experts(experts, top_k, state.clock[GAMMA] + 1)
    miss_rate = 1.0
    if state.measured[ACTIVE] > 0.0:
        active *= min(1.0, state.measured[ACTIVE] / seen)
        miss_rate = state.measured[MISSES] / state.measured[ACTIVE]
    active = max(active, float(top_k))
    per_expert = max(1, min(int(rows * top_k / active + 0.5), costs.gpu_ns.shape[0] - 1))
    dense = costs.dense_ns[min(rows, costs.dense_ns.shape[0] - 1)] + costs.router_ns + costs.d2h_ns
    compute = active * costs.gpu_ns[per_expert]
    copies = active * miss_rate * (costs.copy_latency_ns + costs.copy_ns)
    return (
        gamma * costs.draft_step_ns + costs.pass_ns + layers * (dense + max(compute, copies))
    )  # fmt: skip


@inner
def choose_by_roofline(state, costs, gamma_max):
    """gamma in 1..gamma_max with the most expected tokens per modelled time; the shorter on a tie.
    Its system always speculates."""
    best = min(1, gamma_max)
    highest = 0.0
    for gamma in range(best, gamma_max + 1):
        value = expected_tokens(state, gamma, 0.0) / max(pass_roofline_ns(state, costs, gamma), 1.0)
        if value > highest:
            highest = value
            best = gamma
    return best
