"""Buffers to stream through: none for a policy that streams would silently be another policy."""

from __future__ import annotations

from typing import Any

from policies.composed import ComposedPolicy
from policies.errors import UserError
from policies.parts import Cheaper, StreamMisses

MOST_STAGING = 1 << 16  # more experts than any layer has; a model may have fewer than buffers


def check_staging(policy: Any, staging: int) -> None:
    """UserError if the policy's rule for misses is to stream them and there is no buffer for it, or
    if there are more buffers than MOST_STAGING.
    """
    if staging > MOST_STAGING:
        raise UserError(f"staging={staging}: must be 0..{MOST_STAGING}")
    streams = isinstance(policy, ComposedPolicy) and isinstance(
        policy.balancer, StreamMisses | Cheaper
    )
    if streams and staging == 0:
        raise UserError(
            f"policy {policy.name} streams misses, and staging=0 leaves no buffer to stream "
            "through; give staging=1 or more, or choose another policy"
        )
