"""The published figures other than tokens per second, each with its prediction."""

from collections.abc import Mapping

import pandas as pd

from experiments.studies import paper_targets as published
from experiments.studies.paper_memory import Memory
from experiments.studies.paper_predictions import LLAMA, LLAMA_SD, SPAC, mean_gain

ABLATIONS = ("inertia", "balancer", "asynchronous engine")


def check_rows(
    speeds: Mapping[str, float], deepseek: Mapping[str, float], long: float, memory: Memory
) -> pd.DataFrame:
    """quantity, published, predicted, error. `long`: SpAc's passes per second
    near 4,096 tokens over those at the start."""
    arithmetic, geometric = mean_gain(speeds)
    rivals = {name: speed for name, speed in deepseek.items() if name != SPAC and "LRU" not in name}
    base = speeds[SPAC]
    rows = [
        (f"{SPAC} over {LLAMA_SD}", published.SPAC / published.LLAMA_SPECULATION,
         base / speeds[LLAMA_SD]),
        ("mean gain over standard baselines", published.MEAN_GAIN, arithmetic),
        ("the same, geometric mean", published.MEAN_GAIN, geometric),
        ("gain on DeepSeek-V2-Lite over the strongest", published.DEEPSEEK_GAIN,
         deepseek[SPAC] / max(rivals.values())),
        ("gain on DeepSeek-V2-Lite over the better llama.cpp", published.DEEPSEEK_GAIN,
         deepseek[SPAC] / max(deepseek[LLAMA], deepseek[LLAMA_SD])),
        ("largest cache ratio that fits", published.LARGEST_RATIO, memory.largest_ratio),
        ("passes per second near 4,096 tokens over at the start", 1.0, long),
        ("ms per token, all experts copied on demand", published.ON_DEMAND_MS,
         1e3 / speeds["Accelerate, vLLM"]),
    ]  # fmt: skip
    rows += [
        (f"TPS without the {part} over with it (below 1: it helps)", None,
         speeds[f"MoE-SpAc, no {part}"] / base)
        for part in ABLATIONS
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["quantity", "published", "predicted"])
    return table.assign(error=table["predicted"] / table["published"].astype(float) - 1)
