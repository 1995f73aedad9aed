"""A run log small enough to compute every figure by hand, and random ones for round trips."""

import numpy as np

from traces.manifest import ModelInfo
from traces.run_info import RunInfo
from traces.runlog import RunLogBuilder

MODEL = ModelInfo("model", layers=2, experts=4, top_k=2, expert_bytes=100)
GPU, CPU, FETCH, STREAM = 1, 2, 3, 4
DEMAND, STREAMED, PREFETCH = 0, 1, 2


def run_info(**changes: object) -> RunInfo:
    fields: dict[str, object] = {
        "kind": "simulated",
        "policy": "lru",
        "policy_params": {"ratio": 0.17, "nested": {"levels": [1, 2]}, "name": None},
        "model": MODEL,
        "slots": 3,
        "staging": 1,
        "hardware": "rtx4090",
        "engine": "reference",
        "trace": "prose",
        "trace_digest": "ab" * 32,
        "expert_bytes": 100,
        "decision_source": "none",
        "approximate": False,
    }
    return RunInfo(**(fields | changes))  # type: ignore[arg-type]


def add_layer(
    builder: RunLogBuilder, pass_index: int, layer: int, t0: int, **changes: object
) -> None:
    """A layer of 100 ns: routing after 10, plan after 20, GPU 20..50, CPU 30..80, join at 90."""
    fields: dict[str, object] = {
        "t0_ns": t0,
        "t1_ns": t0 + 10,
        "t2_ns": t0 + 20,
        "gpu_begin_ns": t0 + 20,
        "gpu_end_ns": t0 + 50,
        "cpu_begin_ns": t0 + 30,
        "cpu_end_ns": t0 + 80,
        "join_ns": t0 + 90,
        "decision_ns": 4,
        "view_digest": (1 << 64) - 1,
        "experts": [0, 1],
        "counts": [1, 2],
        "placement": [GPU, CPU],
        "hit": [1, 0],
    }
    builder.add_layer(pass_index=pass_index, layer=layer, **(fields | changes))  # type: ignore[arg-type]


def add_pass(
    builder: RunLogBuilder, pass_index: int, begin: int, end: int, **changes: object
) -> None:
    fields: dict[str, object] = {
        "request": 0,
        "phase": 1,
        "start_position": 5,
        "gamma": 2,
        "rows": 3,
        "accepted": 1,
        "committed": 2,
        "draft_end_ns": begin,
        "warmup": False,
    }
    builder.add_pass(pass_index=pass_index, begin_ns=begin, end_ns=end, **(fields | changes))  # type: ignore[arg-type]


def add_copy(builder: RunLogBuilder, copy_id: int, **changes: object) -> None:
    fields: dict[str, object] = {
        "expert": 0,
        "slot": 0,
        "generation": 1,
        "kind": PREFETCH,
        "pass_index": 0,
        "layer": 0,
        "bytes": 100,
        "issue_ns": 0,
        "begin_ns": 0,
        "landing_ns": 0,
    }
    builder.add_copy(copy_id=copy_id, **(fields | changes))  # type: ignore[arg-type]


def fill_randomly(builder: RunLogBuilder, passes: int, seed: int) -> None:
    """Passes with layers, draft steps and copies of random contents (no sense in them)."""
    generator = np.random.default_rng(seed)
    for index in range(passes):
        for step in range(int(generator.integers(0, 3))):
            keys = generator.integers(0, 8, int(generator.integers(0, 3)))
            builder.add_draft(
                pass_index=index,
                step=step,
                token=7,
                t_ns=index * 1000 + step,
                decision_ns=3,
                prefetch_expert=keys,
                prefetch_slot=keys % 3,
            )
        for layer in range(MODEL.layers):
            active = np.sort(generator.permutation(4)[: int(generator.integers(0, 4))])
            add_layer(
                builder,
                index,
                layer,
                index * 1000 + 100 * layer,
                view_digest=int(generator.integers(0, 1 << 63)) * 2 + 1,
                experts=active,
                counts=generator.integers(1, 4, len(active)),
                placement=generator.integers(1, 5, len(active)),
                hit=generator.integers(0, 2, len(active)),
                demand_expert=layer * 4 + active,
                demand_slot=active % 3,
                leave_prefetch_expert=active,
                leave_prefetch_slot=active,
            )
        add_copy(builder, index, pass_index=index, expert=int(generator.integers(0, 8)))
        add_pass(builder, index, index * 1000, index * 1000 + 900, request=index // 3)
