"""What a forced run is made of: trace, model shape, device, costs; from the config of a command."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from experiments.model_shapes import shape_of
from experiments.trace_choice import Workload, find_trace, open_workload
from experiments.values import as_mapping, number, positive, whole_number
from policies.costs import CostTable
from policies.errors import UserError
from runtime.checkpoints import torch_dtype
from runtime.device import Device
from runtime.devices import STANDIN, device_kind, open_device
from runtime.engine_settings import EngineSettings, check_slots, slots_of_ratio
from runtime.model_shape import ModelShape
from runtime.pace import slow_motion
from runtime.random_model import RandomModel, random_model
from runtime.standin_link import Link
from simulator.cost_tables import cost_table
from simulator.draft_profile import DraftProfile, draft_profile
from simulator.hardware import DecisionTimes, HardwareProfile, hardware_profile
from simulator.model_profile import ModelProfile, model_profile
from simulator.settings import SimulationSettings
from traces.mapped_replay import MappedReplay, mapping_note

SLOWEST = 100_000  # times slower; sums of times stay within 64 bits
CARRIER = 32  # hidden width of the weights that stand for a model whose times are padded


@dataclass(frozen=True)
class ForcedChoice:
    """`shape`: what is really built; `model`, `draft`, `hardware`: whose times are reckoned with.
    `slow`: so many times slower than the profile the stand-in is padded, 0 where it is not.
    """

    workload: Workload
    replay: MappedReplay
    shape: ModelShape
    dtype: torch.dtype
    model: ModelProfile
    draft: DraftProfile
    hardware: HardwareProfile
    device_name: str
    settings: EngineSettings
    slow: int
    link: Link | None = None

    @property
    def expert_bytes(self) -> int:
        """Bytes that a copy really moves."""
        return self.shape.layout(self.dtype).expert_bytes

    def costs(
        self, hardware: HardwareProfile | None = None, decision: DecisionTimes | None = None
    ) -> CostTable:
        """Times of the model on `hardware`, None for the chosen one; slowed where padded."""
        table = cost_table(
            hardware or self.hardware, self.model, self.draft, self.settings.gamma + 1,
            trace_layers=self.shape.layers, decision=decision,
        )  # fmt: skip
        table = table._replace(expert_bytes=self.expert_bytes)
        return slow_motion(table, self.slow) if self.slow else table

    def device(self) -> Device:
        """A new device. A padded link takes as long for the bytes it moves as the profile's for a
        real expert.
        """
        link = self.link
        if self.slow:
            costs = self.costs()
            link = Link(self.expert_bytes * 1e9 / costs.copy_ns, costs.copy_latency_ns)
        if link is None:
            profile = self.hardware.link
            link = Link(profile.bytes_per_second, profile.latency_ns)
        return open_device(self.device_name, link, None, self.settings.launch_early)

    def build(self, device: Device) -> RandomModel:
        """The model on `device`."""
        settings = self.settings
        return random_model(self.shape, self.dtype, device, settings.slots, settings.staging)

    def simulation(self) -> SimulationSettings:
        """The same run for the simulator."""
        return SimulationSettings(
            gamma=self.settings.gamma,
            slots=self.settings.slots,
            staging=self.settings.staging,
            launch="early" if self.settings.launch_early else "late",
            warmup_requests=int(len(self.replay.request_ids) > 1),
        )

    def note(self) -> str:
        """Where routing, weights and times come from, in one line."""
        parts = [mapping_note(self.workload.replay.model, self.replay.model)]
        if self.slow:
            parts.append(
                f"padded to {self.model.name} on {self.hardware.name}, {self.slow} times slower; "
                "small weights carry the bytes"
            )
        return "; ".join(parts)


def choose_forced(
    config: Mapping[str, Any],
    hardware: HardwareProfile,
    slow: int = 0,
    as_if: bool = False,
    trace: str | None = None,
) -> ForcedChoice:
    """From the keys trace, model, draft, device, dtype, cache_ratio, slots, gamma, staging,
    requests, distinct_layers. as_if: keep the trace's layers and experts, take times from the
    model. trace: instead of the key.
    """
    if slow > SLOWEST:
        raise UserError(f"slow_motion={slow}: must be at most {SLOWEST}")
    name = trace or config["trace"]
    if name is None:
        raise UserError("mode=forced follows the routing of a trace; name one with trace=")
    workload = open_workload(find_trace(str(name)), None, 0)
    requests = None if config["requests"] is None else positive("requests", config["requests"])
    traced = workload.replay.model
    dtype = torch_dtype(str(config["dtype"]))
    model = model_profile(as_mapping(config["model"]), "model", traced)
    draft = draft_profile(as_mapping(config["draft"]), "draft")
    kind, _ = device_kind(str(config["device"]))
    if slow and kind != STANDIN:
        raise UserError(f"device={config['device']} has its own times; use paced=false")
    there = len(workload.replay.request_ids)
    if requests is not None and requests > there:
        raise UserError(f"requests={requests}: this trace has {there}; ask for at most that many")
    distinct = config["distinct_layers"]
    distinct = None if distinct is None else whole_number("distinct_layers", distinct)
    if distinct is not None and not 1 <= distinct <= model.moe_layers:
        raise UserError(f"distinct_layers={distinct}: must be 1..{model.moe_layers}")
    shape = shape_of(model, draft, distinct, dtype.itemsize)
    if as_if:
        shape = replace(
            shape, layers=traced.layers, experts=traced.experts, top_k=traced.top_k,
            distinct=traced.layers,
        )  # fmt: skip
    if slow:
        shape = _carrier(shape)
    else:
        model = _as_built(model, shape, dtype)
    replay = MappedReplay(workload.replay, shape.info(dtype), requests)
    return ForcedChoice(
        workload, replay, shape, dtype, model, draft, hardware, str(config["device"]),
        _settings(config, shape, hardware, bool(slow)), slow,
    )  # fmt: skip


def hardware_from(config: Mapping[str, Any]) -> HardwareProfile:
    """The profile of the key hardware."""
    return hardware_profile(as_mapping(config["hardware"]), "hardware")


def _carrier(shape: ModelShape) -> ModelShape:
    """As little to compute as possible, with the same layers, experts and top-k."""
    return replace(
        shape, hidden=CARRIER, expert_width=CARRIER // 4, heads=1, key_heads=1, head_width=CARRIER,
        vocabulary=64, distinct=1, draft_layers=min(1, shape.draft_layers), draft_width=8,
    )  # fmt: skip


def _as_built(model: ModelProfile, shape: ModelShape, dtype: torch.dtype) -> ModelProfile:
    """The model with experts of the size that is really copied."""
    name = str(dtype).removeprefix("torch.")
    return replace(model, dtype=name, expert_bytes={name: shape.layout(dtype).expert_bytes})


def _settings(
    config: Mapping[str, Any], shape: ModelShape, hardware: HardwareProfile, paced: bool
) -> EngineSettings:
    if config.get("slots") is not None:
        given = whole_number("slots", config["slots"])
        slots = check_slots(given, shape.layers, shape.experts)
    else:
        ratio = 0.17 if config["cache_ratio"] is None else config["cache_ratio"]
        slots = slots_of_ratio(number("cache_ratio", ratio), shape.layers, shape.experts)
    return EngineSettings(
        slots=slots,
        staging=whole_number("staging", config["staging"]),
        gamma=4 if config["gamma"] is None else whole_number("gamma", config["gamma"]),
        dtype=str(config["dtype"]),
        launch_early=config.get("launch", "late") == "early",
        paced=paced,
        hardware=hardware.name,
    )
