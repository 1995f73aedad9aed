"""Rows of an invented comparison, small enough to check by hand."""

from collections.abc import Mapping

import pandas as pd

POLICIES = {"all_cpu": 10.0, "lru_cpu": 16.0, "spac": 20.0, "belady": 25.0, "window_oracle": 24.0}
FORESEEING = ("belady", "window_oracle")
WORKLOADS = {"code": 1.0, "prose": 0.5}


def comparison_rows(
    ratios: tuple[float, ...] = (0.17,),
    gammas: tuple[int, ...] = (4,),
    approximate: bool = False,
    workloads: Mapping[str, float] = WORKLOADS,
) -> pd.DataFrame:
    """TPS = policy's speed x workload's factor x (1 + ratio) x (1 + gamma / 100)."""
    return pd.DataFrame(
        [
            {
                "hardware": "rtx4090",
                "model": "qwen3-30b-a3b",
                "workload": workload,
                "cache_ratio": ratio,
                "gamma": gamma,
                "policy": policy,
                "clairvoyant": policy in FORESEEING,
                "approximate": approximate,
                "tokens_per_second": speed * factor * (1 + ratio) * (1 + gamma / 100),
                "hit_rate_per_token": speed / 100,
                "share_gpu": speed / 100,
                "share_fetch": 0.1,
                "share_stream": 0.0,
                "share_cpu": 0.9 - speed / 100,
                "tokens_per_pass": 2.5,
                "mean_gamma": float(gamma),
                "bytes_copied": 2**30,
                "speculation": True,
                "sweep": False,
                "trace_layers": 8,
                "model_layers": 48,
            }
            for workload, factor in workloads.items()
            for ratio in ratios
            for gamma in gammas
            for policy, speed in POLICIES.items()
        ]
    )
