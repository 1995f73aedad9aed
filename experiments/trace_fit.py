"""Routing fitted to a real trace or to published statistics (`spac trace generate fitted`)."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.studies.paper_routing import fit_law, reached
from experiments.studies.paper_targets import ROUTING, Statistic
from experiments.trace_choice import bundled_names, find_trace
from experiments.trace_model import profile_of
from experiments.unknown import unknown
from policies.errors import UserError
from traces.generated import write_generated
from traces.generators.shape import Statistic as Outcome
from traces.generators.shape import TextShape
from traces.importers.routing import Given
from traces.manifest import ModelInfo
from traces.reader import Trace, open_trace
from traces.synthetic_routing import generate_routing
from traces.text_rows import text_rows

RATIOS = (0.17, 0.25)  # of the caches whose hit rates are fitted
STRETCH = 400  # rows that the search draws at each point


def generate_fitted(
    target: str | None, given: Given, rows: Mapping[str, int], destination: str, seed: int
) -> tuple[Trace, list[Outcome]]:
    """Write the trace; the outcomes are measured on all of its rows. `rows`: requests, tokens."""
    if target is None:
        known = ", ".join(sorted(ROUTING))
        raise UserError(f"spac trace generate fitted needs fit=: a trace, or one of {known}")
    label, model, targets = _targets(str(target))
    model = ModelInfo(
        given.name or model.name, model.layers, given.experts or model.experts, model.top_k,
        given.expert_bytes or model.expert_bytes,
    )  # fmt: skip
    shape = TextShape(model.layers, model.experts, model.top_k, **rows)
    law = fit_law(targets, model, STRETCH, seed)
    routed = generate_routing(law, model, shape.rows, seed)
    outcomes = [
        Outcome(_name(one), one.value, mean_reached(routed.experts, model.experts, one))
        for one in targets
    ]
    parameters = {"fitted to": label, **asdict(law)}
    trace = write_generated(
        destination, routed.experts, shape.request, model, "fitted", parameters, seed,
        routed.weights,
    )  # fmt: skip
    return trace, outcomes


def _targets(target: str) -> tuple[str, ModelInfo, tuple[Statistic, ...]]:
    """(name for the manifest, which holds no path; model; statistics)."""
    profile = profile_of(target) if target in ROUTING else None
    if profile is not None:
        model = ModelInfo(
            profile.name, profile.moe_layers, profile.experts, profile.top_k,
            profile.bytes_of_expert(),
        )  # fmt: skip
        return target, model, ROUTING[target]
    if target not in bundled_names() and not Path(target).expanduser().exists():
        raise unknown("trace or published routing", target, [*bundled_names(), *ROUTING])
    trace = open_trace(find_trace(target))
    label = f"{trace.manifest.workload}, digest {trace.digest[:12]}"
    return label, trace.manifest.model, measured_targets(trace)


def measured_targets(trace: Trace) -> tuple[Statistic, ...]:
    """Reuse from the token before, and the hit rates of LRU, Belady and static caches."""
    experts = text_rows(trace.load(), trace.manifest).experts
    kinds = [("reuse", 0.0)]
    kinds += [(kind, ratio) for ratio in RATIOS for kind in ("lru", "belady", "static")]
    number = trace.manifest.model.experts
    return tuple(
        Statistic(kind, ratio, mean_reached(experts, number, Statistic(kind, ratio, 0.0)))
        for kind, ratio in kinds
    )


def mean_reached(experts: NDArray[np.uint16], number: int, statistic: Statistic) -> float:
    """Mean over whole stretches of as many rows as the search draws; experts uint16 [n, L, K].

    Hit rates depend on how long a text is, so both sides are measured on texts of one length.
    """
    count = max(len(experts) // STRETCH, 1)
    stretches = [experts[at * STRETCH : (at + 1) * STRETCH] for at in range(count)]
    return float(np.mean([reached(one, number, statistic) for one in stretches]))


def _name(one: Statistic) -> str:
    return "experts reused from the token before" if one.kind == "reuse" else (
        f"hit rate of {one.kind} at {one.ratio:.0%}"
    )  # fmt: skip
