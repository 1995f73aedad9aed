"""What is published of MoE-SpAc (arXiv 2603.09983) and of the routing of its targets."""

from dataclasses import dataclass

# Committed tokens per second, means over seven benchmarks, RTX 4090, 17 % of the experts in VRAM.
LLAMA = 15.23
LLAMA_SPECULATION = 17.66
SPAC = 25.06
HYBRIMOE = 12.15
MEAN_GAIN = 4.04  # over all standard baselines
DEEPSEEK_GAIN = 1.53  # over the strongest baseline; 1.53, 1.55, 1.51 on three benchmarks
LARGEST_RATIO = 0.21  # above it VRAM does not suffice
ON_DEMAND_MS = 158.9  # a token, bf16, RTX A6000, no cache (arXiv 2603.19289)
GAMMA = 8  # the released code's demos; the paper's value is not public
SLOTS = 1024  # of Qwen3-30B-A3B: 16.7 %


@dataclass(frozen=True)
class Statistic:
    """A published property of one-token routing. kind: reuse (share of experts that the token
    before chose too), lru, lfu, static or belady (hit rate of a cache per layer at `ratio`)."""

    kind: str
    ratio: float
    value: float


ROUTING: dict[str, tuple[Statistic, ...]] = {
    # Hit rates of arXiv 2608.18261; reuse: about twice chance there, 41-45 % in an RTX 3070 report.
    "qwen3-30b-a3b": (
        Statistic("reuse", 0.0, 0.45),
        Statistic("lru", 0.134, 0.659),
        Statistic("lfu", 0.134, 0.601),
        Statistic("static", 0.134, 0.592),
        Statistic("belady", 0.134, 0.791),
    ),
    # One forward pass over public text, measured on recorded routing of the chat model.
    "deepseek-v2-lite": (
        Statistic("reuse", 0.0, 0.265),
        Statistic("lru", 0.17, 0.355),
        Statistic("lru", 0.25, 0.474),
        Statistic("belady", 0.17, 0.581),
        Statistic("belady", 0.25, 0.701),
    ),
}
