"""The systems of the paper, played: what is predicted beside what is published."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.studies import paper_targets as published
from experiments.studies.paper_world import Play, World, play
from traces.metrics import Metrics

FITTED = "fitted"
PREDICTED = "predicted"
OURS = "no number published"

GAMMA = published.GAMMA
SPAC = "MoE-SpAc"
LLAMA = "llama.cpp"
LLAMA_SD = "llama.cpp with speculation"


@dataclass(frozen=True)
class System:
    """A row of the table. `target`: published TPS."""

    name: str
    play: Play
    kind: str = OURS
    target: float | None = None
    note: str = ""


def systems(all_slots: int, draft_slots: int) -> list[System]:
    """All that is played with Qwen3-30B-A3B. `draft_slots`: what the draft's VRAM is worth."""
    on_demand = "copies active experts on demand; the original moves whole layers"
    return [
        System(LLAMA, Play("all_cpu", 0), FITTED, published.LLAMA, "CPU bandwidth"),
        System(LLAMA_SD, Play("all_cpu", GAMMA), FITTED, published.LLAMA_SPECULATION, "acceptance"),
        System(SPAC, Play("spac", GAMMA), PREDICTED, published.SPAC),
        System("HybriMoE", Play("hybrimoe", 0), PREDICTED, published.HYBRIMOE),
        System("Accelerate, vLLM", Play("stream_active", 0), note=on_demand),
        System("MixtralOffload", Play("mixtral_offloading", 0)),
        System("MoE-Infinity", Play("moe_infinity", 0)),
        System("Fate", Play("fate", 0)),
        System("SP-MoE", Play("sp_moe_standin", GAMMA), note="stand-in for its predictor"),
        System("MoE-SpAc, no inertia", Play("spac_no_inertia", GAMMA)),
        System("MoE-SpAc, no balancer", Play("spac_no_balancer", GAMMA)),
        System("MoE-SpAc, no asynchronous engine", Play("spac_no_async", GAMMA)),
        System("MoE-SpAc, no calibration", Play("spac_no_calibration", GAMMA)),
        System(
            "MoE-SpAc as its code runs", Play("spac_code", GAMMA, lanes="serial"),
            note="thresholds 5 and 1, lanes one after the other",
        ),
        System("LRU cache, no draft", Play("lru_cpu", 0)),
        System(
            "LRU cache, no draft, its VRAM as slots",
            Play("lru_cpu", 0, slots=published.SLOTS + draft_slots),
        ),
        System(
            "all experts in VRAM at 4.5 bits, no draft",
            Play("n_cpu_moe_plain", 0, slots=all_slots, dtype="int4"),
            note="nothing offloaded",
        ),
    ]  # fmt: skip


BASELINES = (
    LLAMA, LLAMA_SD, "HybriMoE", "Accelerate, vLLM", "MixtralOffload", "MoE-Infinity", "Fate",
    "SP-MoE",
)  # fmt: skip


def played(world: World, chosen: list[System]) -> Iterator[tuple[System, Metrics, dict[str, Any]]]:
    """(system, figures, row of the table) of each."""
    for system in chosen:
        figures = play(world, system.play)
        speed, target = figures.tokens_per_second, system.target
        yield system, figures, {
            "system": system.name,
            "policy": system.play.policy,
            "gamma": system.play.gamma,
            "lanes": system.play.lanes,
            "slots": system.play.slots or world.slots,
            "kind": system.kind,
            "published": target,
            "tokens_per_second": speed,
            "error": None if target is None else speed / target - 1,
            "tokens_per_pass": figures.tokens_per_pass,
            "active_experts_per_layer": figures.active_experts_per_layer,
            "hit_rate_per_token": figures.hit_rate_per_token,
            "share_cpu": figures.share_cpu,
            "link_busy_share": figures.link_busy_share,
            "bytes_copied_per_token": figures.bytes_copied / figures.committed_tokens,
            "note": system.note,
        }  # fmt: skip


def deepseek_systems() -> list[System]:
    """What the gain on DeepSeek-V2-Lite is made of."""
    return [
        System(LLAMA, Play("all_cpu", 0)),
        System(LLAMA_SD, Play("all_cpu", GAMMA)),
        System("HybriMoE", Play("hybrimoe", 0)),
        System(SPAC, Play("spac", GAMMA)),
        System("LRU cache, no draft", Play("lru_cpu", 0)),
    ]


def mean_gain(speeds: Mapping[str, float]) -> tuple[float, float]:
    """SpAc over each baseline: (arithmetic, geometric) mean."""
    gains = [speeds[SPAC] / speeds[name] for name in BASELINES]
    product = 1.0
    for gain in gains:
        product *= gain
    return sum(gains) / len(gains), product ** (1 / len(gains))
