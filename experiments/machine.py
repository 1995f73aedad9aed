"""The machine and models whose costs a run uses: config groups hardware, model, draft."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig

from experiments.values import as_mapping, number, positive, whole_number
from policies.errors import UserError
from simulator.capacity import checked_slots, scale_slots, slots_from_ratio, slots_from_vram
from simulator.draft_profile import DraftProfile, draft_profile
from simulator.hardware import HardwareProfile, hardware_profile
from simulator.model_profile import ModelProfile, model_profile
from traces.manifest import ModelInfo

NO_DRAFT = DraftProfile("none", 0, 0, 0, 0)


@dataclass(frozen=True)
class Machine:
    """Hardware with a target and a draft. `model_values` may leave sizes to the trace.

    `context`: tokens of KV that must fit; `dtype` of the experts, None for the model's own.
    """

    hardware: HardwareProfile
    model_values: Mapping[str, Any]
    draft: DraftProfile
    context: int
    dtype: str | None

    def model(self, trace: ModelInfo) -> ModelProfile:
        """The target, completed from the trace where the profile says so."""
        return model_profile(self.model_values, "model", trace)

    def draft_share(self, trace: ModelInfo) -> float:
        """Cache ratio that the VRAM of the draft and its KV is worth."""
        model = self.model(trace)
        size = self.draft.bytes + self.context * self.draft.kv_bytes_per_token
        slots = size // model.bytes_of_expert(self.dtype)
        return slots / (model.moe_layers * model.experts)


@dataclass(frozen=True)
class Capacity:
    """How many slots: exactly one of a ratio, a number for the trace's shape, or all VRAM left."""

    cache_ratio: float | None = None
    slots: int | None = None
    vram: bool = False

    def of(self, machine: Machine, trace: ModelInfo, staging: int) -> int:
        """Slots for the trace's layers x experts."""
        if self.vram:
            model = machine.model(trace)
            slots = slots_from_vram(
                machine.hardware, model, machine.draft, machine.context, staging, machine.dtype
            )
            return scale_slots(slots, model, trace.layers, trace.experts)
        if self.slots is not None:
            return checked_slots(self.slots, trace.layers, trace.experts)
        assert self.cache_ratio is not None
        return slots_from_ratio(self.cache_ratio, trace.layers, trace.experts)


def machine_from(config: DictConfig) -> Machine:
    """From the composed groups; UserError names the group, the key and the number."""
    return Machine(
        hardware_profile(as_mapping(config.hardware), "hardware"),
        as_mapping(config.model),
        draft_profile(as_mapping(config.draft), "draft"),
        # A command whose slots are always a share of the experts has no such key.
        positive("context", config.get("context", 1)),
        None if config.dtype is None else str(config.dtype),
    )


def capacities_from(config: DictConfig, ratios: list[Any], slots: list[Any]) -> list[Capacity]:
    """The grid of slot counts: `budget=vram` or `slots=` where given, else cache ratios."""
    if config.budget not in (None, "vram"):
        raise UserError(f"budget={config.budget}: only vram is possible, or null")
    if config.budget == "vram":
        return [Capacity(vram=True)]
    if slots != [None]:
        return [Capacity(slots=whole_number("slots", count)) for count in slots]
    return [Capacity(cache_ratio=number("cache_ratio", ratio)) for ratio in ratios]
