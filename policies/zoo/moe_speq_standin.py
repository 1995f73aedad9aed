"""Stand-in for MoE-SpeQ (arXiv 2511.14102): its int4 copy of the target predicts experts while it
drafts; here the next layers' routers predict. Its governor of the draft length is kept."""

from policies.composed import ComposedPolicy
from policies.parts import FetchMisses, NextLayer, Recency, Roofline


def moe_speq_standin(horizon: int = 2) -> ComposedPolicy:
    """`horizon`: layers predicted ahead."""
    return ComposedPolicy(
        "moe_speq_standin", Recency(), FetchMisses(), NextLayer(horizon), window=Roofline()
    )
