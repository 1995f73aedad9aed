"""What a layer costs the host: session, policy, messages, queueing of work, without the work.

`python -m experiments.host_overhead`: 48 layers of it against a simulated pass on an RTX 4090, and
how busy the link is when it is what everything waits for. All on the stand-in; launches of a GPU's
driver are counted, not timed.
"""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from experiments.gpu_check.setup import POLICIES, Setup
from experiments.idle_devices import BareDevice, IdleDevice
from experiments.script import Options, count, new_file, run_script
from policies.costs import CostTable
from runtime.device import COMPUTE, COPY, ROUTER
from runtime.engine_core import EngineCore, ModelParts
from runtime.engine_settings import EngineSettings
from runtime.expert_layout import ExpertLayout
from runtime.expert_math import activated
from runtime.forced_runs import run_policy
from runtime.host_arena import HostArena
from runtime.next_layers import NextLayers
from runtime.standin import StandIn
from runtime.standin_link import Link
from simulator.compiled import simulate_compiled
from simulator.settings import SimulationSettings
from traces.metrics import metrics
from traces.replay import Replay
from traces.report_json import write_json
from traces.window import Window

HIDDEN, WIDTH = 32, 8  # sizes play no part: nothing is computed
WARM_UP = 3  # passes
NAMES = ("lru_cpu", "lru_fetch", "spac", "ours")
LINK_BOUND = ("lru_fetch",)
SLOWED = 100.0
NOTE = (
    "processor time of the host on a device that does no work; launches of a GPU's driver are "
    "counted, not timed"
)
GOAL_SHARE, GOAL_BUSY = 0.02, 0.9


@dataclass(frozen=True)
class Overhead:
    """Processor time of the host per layer, in ns. `decision_ns`: wall time of session and policy,
    part of it. `between_ns`: what a pass costs beside its layers, the log included, medians too.
    """

    layers: int
    median_ns: float
    mean_ns: float
    p90_ns: float
    decision_ns: float
    between_ns: float


@torch.inference_mode()
def layer_overhead(
    device: StandIn,
    replay: Replay,
    policy: Any,
    costs: CostTable,
    settings: EngineSettings,
    passes: int,
) -> Overhead:
    """Over some decode passes of the first request of `replay`, on a device that does no work."""
    core, taken = idle_core(device, replay, policy, costs, settings), []
    for number, times in enumerate(islice(played(core, replay), WARM_UP + passes)):
        if number >= WARM_UP:
            taken.append(times)
        elif isinstance(device, IdleDevice):
            device.queued.clear()
    core.close()
    table = core.runlog().layers
    table = table[table["pass_index"] >= WARM_UP]
    host, between = np.array(taken).T
    decisions = table["decision_ns"] + table["leave_decision_ns"]
    return Overhead(
        layers=len(host) * replay.model.layers,
        median_ns=float(np.median(host)),
        mean_ns=float(host.mean()),
        p90_ns=float(np.quantile(host, 0.9)),
        decision_ns=float(decisions.median()),
        between_ns=float(np.median(between)),
    )


def idle_core(
    device: StandIn, replay: Replay, policy: Any, costs: CostTable, settings: EngineSettings
) -> EngineCore:
    """A core whose experts are tiny: only their number is that of the model."""
    model = replay.model
    layout = ExpertLayout(model.layers, model.experts, HIDDEN, WIDTH, torch.float32)
    arena = HostArena(layout, torch.zeros(layout.total, layout.row_bytes, dtype=torch.uint8))
    none = NextLayers([], 0, model.top_k)
    parts = ModelParts(model.name, model.top_k, arena, activated(functional.silu), none)
    return EngineCore(parts, device, policy, costs, settings, None)


def played(core: EngineCore, replay: Replay) -> Iterator[tuple[float, float]]:
    """Play pass after pass of the first request: ns of a layer, and beside the layers, of each."""
    start = replay.first(replay.request_ids[0])
    core.listener.start_forced_request(0, start)
    while True:
        window, before = _start_pass(core, replay, start)
        layer = _layers(core, window)
        begin = time.thread_time_ns()
        core.listener.end_pass(window.accepted, [0] * window.committed)
        yield layer, before + time.thread_time_ns() - begin
        start += window.committed


def _start_pass(core: EngineCore, replay: Replay, start: int) -> tuple[Window, int]:
    """The pass, and processor time in ns up to its first layer."""
    request, listener = replay.request_ids[0], core.listener
    token = int(replay.window(request, start, 0).tokens[0])
    begin = time.thread_time_ns()
    chosen = listener.start_pass(token, core.session.shape.gamma_max)
    spent = time.thread_time_ns() - begin
    window = replay.window(request, start, chosen)
    begin = time.thread_time_ns()
    for step in range(window.gamma):
        listener.draft_step(step, int(window.tokens[step + 1]), 0.0)
    listener.before_verify(window.tokens.tolist())
    return window, spent + time.thread_time_ns() - begin


def _layers(core: EngineCore, window: Window) -> float:
    """Nanoseconds per layer, from its router's choice until the next one can be queued: of the
    host's processor, so that neither other programs nor the wait for the CPU lane count.
    """
    experts = torch.from_numpy(window.experts.astype(np.int64))
    rows, layers, top_k = experts.shape
    hidden, weights = torch.zeros(rows, HIDDEN), torch.full((rows, top_k), 1.0 / top_k)
    begin = time.thread_time_ns()
    for layer in range(layers):
        core.driver.forward(layer, hidden, experts[:, layer], weights)
    return (time.thread_time_ns() - begin) / layers


def link_use(setup: Setup, policy: str, paced: bool, slowed: float) -> dict[str, float]:
    """How busy the link is, `slowed` times slower than the setup's, so that all wait for it."""
    link = setup.hardware.link
    device = StandIn(
        {COPY: Link(link.bytes_per_second / slowed)}, inline=frozenset({COMPUTE, ROUTER})
    )
    model, costs = setup.random_model(device), setup.costs()
    copy_ns = model.arena.layout.expert_bytes * 1e9 * slowed / link.bytes_per_second
    costs = costs._replace(copy_latency_ns=0, copy_ns=round(copy_ns))
    settings = setup.settings(paced=paced)
    log = run_policy(model, setup.replay("code", 1), POLICIES[policy](), costs, settings)
    device.close()
    possible = simulate_compiled(
        setup.replay("code", 1), POLICIES[policy](), costs, _playing(setup)
    )
    figures = metrics(log)
    return {
        "busy_share": figures.link_busy_share,
        "simulated_busy_share": metrics(possible).link_busy_share,
        "bytes": figures.bytes_copied,
        "seconds": figures.decode_seconds,
    }


def against_a_pass(setup: Setup, names: Sequence[str], passes: int) -> dict[str, Any]:
    """Overhead by policy, times the model's layers, against a pass simulated with the costs of the
    setup's hardware.
    """
    found: dict[str, Any] = {}
    replay = setup.replay("code", 1)
    settings, layers = setup.settings(dtype="float32"), setup.shape.layers
    for name in names:
        policy, costs, device = POLICIES[name], setup.costs(), IdleDevice()
        whole = layer_overhead(device, replay, policy(), costs, settings, passes)
        driver = layer_overhead(BareDevice(), replay, policy(), costs, settings, passes)
        figures = metrics(simulate_compiled(replay, policy(), costs, _playing(setup)))
        pass_ns = figures.decode_seconds * 1e9 / figures.passes
        found[name] = {
            **asdict(whole),
            "driver": asdict(driver),
            "queued": {what: count / whole.layers for what, count in sorted(device.queued.items())},
            "simulated_pass_ns": pass_ns,
            "share_of_pass": whole.median_ns * layers / pass_ns,
            "driver_share_of_pass": driver.median_ns * layers / pass_ns,
        }
    return found


def _playing(setup: Setup) -> SimulationSettings:
    return SimulationSettings(gamma=setup.gamma, slots=setup.slots, staging=2, warmup_requests=0)


def main() -> int:
    """Both measurements, as a JSON file and some lines."""
    parser = Options(prog="python -m experiments.host_overhead", description=__doc__)
    parser.add_argument("--passes", type=count, default=20, help="measured passes per policy")
    parser.add_argument("--small", action="store_true", help="a tiny model, to test the command")
    default = Path("experiments/results/overhead/overhead.json")
    parser.add_argument("--out", type=new_file, default=default, help="the JSON file")
    given = parser.parse_args()
    torch.set_num_threads(1)
    # The costs of the real machine, with the sizes of the real model, or of the tiny one.
    setup = Setup("standin" if given.small else "cuda", given.small)
    found: dict[str, Any] = {
        "note": NOTE,
        "model": setup.model.name,
        "hardware": setup.hardware.name,
        "load_average": round(os.getloadavg()[0], 1),
        "goal": f"share_of_pass <= {GOAL_SHARE}",
        "policies": against_a_pass(setup, NAMES, given.passes),
        "link_goal": f"busy_share >= {GOAL_BUSY}",
        "link": {
            f"{name}, {'padded' if paced else 'unpadded'}": link_use(
                Setup("standin", True), name, paced, SLOWED
            )
            for name in LINK_BOUND for paced in (True, False)
        },
    }  # fmt: skip
    write_json(given.out, found, indent=1)
    for name, one in found["policies"].items():
        print(
            f"{name:10}{one['median_ns'] / 1e3:5.0f} us a layer ({one['share_of_pass']:.1%} of a "
            f"simulated pass), {one['driver']['median_ns'] / 1e3:.0f} us "
            f"({one['driver_share_of_pass']:.1%}) without the stand-in's queueing, of it "
            f"session and policy {one['driver']['decision_ns'] / 1e3:.0f} us; beside the layers "
            f"{one['driver']['between_ns'] / 1e6:.1f} ms a pass"
        )
    for name, one in found["link"].items():
        shares = f"{one['busy_share']:.1%}, simulated {one['simulated_busy_share']:.1%}"
        print(f"{name:24}link busy {shares}")
    return 0


if __name__ == "__main__":
    sys.exit(run_script(main))
