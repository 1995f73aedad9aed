"""World: a target with generated routing on a machine, and one run in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from experiments.machine import NO_DRAFT, Machine
from experiments.policy_choice import choose_policies
from simulator.cost_tables import cost_table
from simulator.engines import simulate
from simulator.hardware import HardwareProfile
from simulator.settings import SimulationSettings
from traces.manifest import ModelInfo
from traces.metrics import Metrics, metrics
from traces.reader import Trace, open_trace
from traces.replay import open_replay
from traces.synthetic_routing import RoutingLaw, generate_routing, text_of
from traces.writer import TraceWriter

REQUESTS = 2  # the first is warm-up
PREDICTION_ACCURACY = 0.9  # of next-layer predictions: about 90 % published (AdapMoE, others)


@dataclass(frozen=True)
class World:
    """`acceptance`: chance that a draft is accepted, given that those before it were."""

    machine: Machine
    trace: Trace
    acceptance: float
    slots: int
    seed: int

    @property
    def model(self) -> ModelInfo:
        """Shape of the target."""
        return self.trace.manifest.model


@dataclass(frozen=True)
class Play:
    """One system in a world. `parameters`: of its policy; `dtype`: of the experts; `slots`: None
    for the world's own."""

    policy: str
    gamma: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    lanes: str = "concurrent"
    slots: int | None = None
    dtype: str | None = None


def play(world: World, what: Play) -> Metrics:
    """All figures of the run."""
    (choice,) = choose_policies([what.policy], what.parameters)
    replay = open_replay(world.trace, world.acceptance, world.seed)
    machine, settings = world.machine, SimulationSettings(
        what.gamma, what.slots or world.slots, lanes=what.lanes,  # type: ignore[arg-type]
    )  # fmt: skip
    costs = cost_table(
        machine.hardware, machine.model(world.model), machine.draft if what.gamma else NO_DRAFT,
        what.gamma + 1, what.dtype or machine.dtype, world.model.layers,
    )  # fmt: skip
    return metrics(simulate(replay, choice.build(), costs, settings))


def generated_trace(
    path: Path, law: RoutingLaw, model: ModelInfo, tokens: int, seed: int, first: int = 0
) -> Trace:
    """Write and open a text trace of REQUESTS requests of `tokens` tokens from position `first`."""
    routed = generate_routing(law, model, REQUESTS * tokens, seed)
    manifest, rows = text_of(routed, model, REQUESTS, first, PREDICTION_ACCURACY, seed)
    with TraceWriter(path, manifest) as writer:
        writer.append(rows)
    return open_trace(path)


def with_cpu_rate(machine: Machine, rate: float) -> Machine:
    """CPU experts read `rate` bytes a second; while a copy runs, what the link leaves them."""
    return replace(machine, hardware=_rates(machine.hardware, cpu=rate))


def with_link_rate(machine: Machine, rate: float) -> Machine:
    """Copies move `rate` bytes a second."""
    return replace(machine, hardware=_rates(machine.hardware, link=rate))


def _rates(
    hardware: HardwareProfile, cpu: float | None = None, link: float | None = None
) -> HardwareProfile:
    cpu = cpu or hardware.cpu.bytes_per_second
    link = link or hardware.link.bytes_per_second
    left = max(1, round(1024 * (cpu - link) / cpu))
    return replace(
        hardware,
        cpu=replace(hardware.cpu, bytes_per_second=cpu, contention=left),
        link=replace(hardware.link, bytes_per_second=link),
    )
