"""Stand-in for SP-MoE (arXiv 2510.10302): its predictions come from the draft's attention through
the target's gates while drafting; here the next layers' routers predict, one layer at a time. Its
cutoff layer is kept: no prefetch behind the layer whose copies no longer fit."""

from policies.composed import ComposedPolicy
from policies.parts import FetchMisses, NextLayer, Recency


def sp_moe_standin(horizon: int = 2) -> ComposedPolicy:
    """`horizon`: layers predicted ahead."""
    return ComposedPolicy(
        "sp_moe_standin", Recency(), FetchMisses(), NextLayer(horizon, cutoff=True), quota="pool"
    )
