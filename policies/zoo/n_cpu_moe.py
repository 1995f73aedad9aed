"""llama.cpp's `--n-cpu-moe N`: the experts of the first N layers stay in host memory, those of the
others in VRAM. N follows from the slots: whole layers only."""

from policies.composed import ComposedPolicy
from policies.parts import ByResidency, Fixed, FixedWindow, HighestUtility


def n_cpu_moe(gamma: int | None = None) -> ComposedPolicy:
    """With speculation at the run's gamma. After a cold start the slots fill in the first passes;
    the original loads them before it begins."""
    return ComposedPolicy(
        "n_cpu_moe", Fixed(), ByResidency(), HighestUtility(), window=FixedWindow(gamma),
        quota="whole_layers",
    )  # fmt: skip


def n_cpu_moe_plain() -> ComposedPolicy:
    """Without speculation: one token a pass."""
    return ComposedPolicy(
        "n_cpu_moe_plain", Fixed(), ByResidency(), HighestUtility(), window=FixedWindow(0),
        quota="whole_layers",
    )  # fmt: skip
