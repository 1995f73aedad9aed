"""All experts on the CPU: llama.cpp's `--n-cpu-moe` for every layer. No slots are used."""

from policies.composed import ComposedPolicy
from policies.parts import AllCpu, NoEstimator, Still


def all_cpu() -> ComposedPolicy:
    """No expert ever leaves host memory."""
    return ComposedPolicy("all_cpu", NoEstimator(), AllCpu(), Still())
