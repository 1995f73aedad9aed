"""The section about the host: what a layer costs it, on this machine's processor."""

from typing import Any

from experiments.gpu_check.setup import Setup
from experiments.host_overhead import NAMES, against_a_pass


def overhead(setup: Setup) -> dict[str, Any]:
    """See experiments.host_overhead."""
    return against_a_pass(setup, NAMES[:1] if setup.small else NAMES, 2 if setup.small else 20)
