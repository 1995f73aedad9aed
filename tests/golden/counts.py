"""Exact results of one request under each policy: hits, misses, bytes copied, nanoseconds.

`python -m tests.golden.counts` writes golden.json anew: do it only when a change of behaviour is
meant, and say why.
"""

import json
from pathlib import Path

import numpy as np
import yaml

from policies.zoo import ZOO
from simulator.cost_tables import cost_table
from simulator.draft_profile import draft_profile
from simulator.engines import simulate
from simulator.hardware import hardware_profile
from simulator.model_profile import model_profile
from simulator.requirements import rows_needed
from simulator.settings import SimulationSettings
from traces.reader import open_trace
from traces.replay import open_replay

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("golden.json")
TRACES = ("code", "maths", "prose")
SLOTS = (8, 24, 51, 87, 128, 192, 320, 512)  # of 512 experts
GAMMA = 4


def profile(group: str, name: str) -> dict:
    return yaml.safe_load((ROOT / "conf" / group / f"{name}.yaml").read_text())


def counts(trace: str, policy: str, slots: int) -> list[int]:
    """[hits, misses, bytes, ns] of the first request, experts counted once a pass and layer."""
    replay = open_replay(open_trace(ROOT / "traces" / "data" / trace))
    costs = cost_table(
        hardware_profile(profile("hardware", "rtx4090")),
        model_profile(profile("model", "qwen3-30b-a3b")),
        draft_profile(profile("draft", "qwen3-4b-fp8")),
        rows_needed(replay, GAMMA),
        trace_layers=replay.model.layers,
    )
    settings = SimulationSettings(gamma=GAMMA, slots=slots, warmup_requests=0, requests=1)
    log = simulate(replay, ZOO[policy](), costs, settings)
    decode = log.passes[log.passes["phase"] == 1]["pass_index"]
    layers = log.layers[log.layers["pass_index"].isin(decode)]
    hit = np.concatenate(layers["hit"].to_list())
    copied = int(log.copies["bytes"].sum()) if len(log.copies) else 0
    return [int(hit.sum()), int(len(hit) - hit.sum()), copied, int(log.passes["end_ns"].max())]


def all_counts(trace: str) -> dict[str, dict[str, list[int]]]:
    """policy -> slots -> counts."""
    return {
        policy: {str(slots): counts(trace, policy, slots) for slots in SLOTS}
        for policy in sorted(ZOO)
    }


if __name__ == "__main__":
    table = {trace: all_counts(trace) for trace in TRACES}
    lines = [
        f'  "{trace}": {{\n'
        + ",\n".join(f'    "{name}": {json.dumps(row)}' for name, row in rows.items())
        + "\n  }"
        for trace, rows in table.items()
    ]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")
