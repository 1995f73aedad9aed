"""Compositions of all parts, and random scenes for them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies

from policies import parts
from policies.composed import ComposedPolicy
from policies.costs import CostTable
from tests.simulator.scenes import ListReplay, round_costs

ESTIMATORS = (
    parts.NoEstimator(),
    parts.Recency(),
    parts.Decayed(0.8),
    parts.Decayed(1.0),
    parts.Last(),
    parts.Inertia(),
    parts.StaticProfile(2),
)
BALANCERS = (
    parts.AllCpu(),
    parts.ByResidency(),
    parts.FetchMisses(),
    parts.FetchMisses(bypass=True),
    parts.Threshold(),
)
MOVERS = (
    parts.Still(),
    parts.AdmitMisses(),
    parts.NextLayer(1),
    parts.Unified(),
    parts.HighestUtility(),
)
QUOTAS = ("per_layer", "pool")
BELADY = (parts.NextUse(), parts.FetchMisses(bypass=True), parts.Still())


@strategies.composite
def policies(draw: strategies.DrawFn, early: bool = False) -> ComposedPolicy:
    """Any composition; with early launch none that sends residents to the CPU."""
    balancers = BALANCERS[1:] if early else BALANCERS
    return ComposedPolicy(
        "composed",
        draw(strategies.sampled_from((*ESTIMATORS, parts.NextUse(), parts.Upcoming()))),
        draw(strategies.sampled_from(balancers)),
        draw(strategies.sampled_from(MOVERS)),
        signal=draw(strategies.sampled_from(("count", "bit", "mass"))),
        quota=draw(strategies.sampled_from(QUOTAS)),
    )


@strategies.composite
def replays(draw: strategies.DrawFn, single: bool = False) -> ListReplay:
    """A few requests of random routing, some with prefill; `single`: one expert per layer and
    pass."""
    layers, experts = draw(strategies.integers(1, 3)), draw(strategies.integers(2, 6))
    top_k = 1 if single else draw(strategies.integers(1, min(3, experts)))
    gamma = 0 if single else draw(strategies.integers(0, 2))
    generator = np.random.default_rng(draw(strategies.integers(0, 2**32)))

    def rows(number: int) -> np.ndarray:
        order = generator.random((number, layers, experts)).argsort(axis=2)
        return order[:, :, :top_k].astype(np.uint16)

    requests = [
        [rows(gamma + 1) for _ in range(draw(strategies.integers(1, 12 if single else 4)))]
        for _ in range(draw(strategies.integers(1, 3)))
    ]
    prompts = [rows(5) if draw(strategies.booleans()) else None for _ in requests]
    return ListReplay(
        requests,
        experts,
        accepted=draw(strategies.integers(0, gamma)),
        prompts=prompts,
        columns=frozenset({"router_weights", "next_layer_1"}),
    )


@strategies.composite
def cost_tables(draw: strategies.DrawFn) -> CostTable:
    """Any relation of copy, CPU, GPU and decision times."""
    amount = strategies.integers(0, 900)
    return round_costs(
        copy_ns=draw(strategies.integers(1, 3000)),
        copy_latency_ns=draw(strategies.integers(0, 50)),
        contention=draw(strategies.integers(1, 1024)),
        d2h_ns=draw(amount),
        dispatch_ns=draw(amount),
        return_ns=draw(amount),
        draft_step_ns=draw(amount),
        pass_ns=draw(amount),
        decision_layer_ns=draw(amount),
        decision_leave_ns=draw(amount),
        decision_draft_ns=draw(amount),
    )
