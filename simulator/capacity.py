"""How many slots a run has: from a cache ratio, a number, or the VRAM that is left."""

from __future__ import annotations

from fractions import Fraction

from policies.errors import UserError
from simulator.draft_profile import DraftProfile
from simulator.hardware import HardwareProfile
from simulator.model_profile import ModelProfile


def slots_from_ratio(cache_ratio: float, layers: int, experts: int) -> int:
    """floor(cache_ratio * layers * experts), exact on the decimal value; the ratio is in (0, 1]."""
    if not 0 < cache_ratio <= 1:
        raise UserError(f"cache_ratio={cache_ratio}: must be above 0 and at most 1")
    total = layers * experts
    slots = int(Fraction(str(cache_ratio)) * total)
    if slots < 1:
        raise UserError(
            f"cache_ratio={cache_ratio}: gives {slots} slots of {total} experts; "
            f"use at least {1 / total:.3g}"
        )
    return slots


def checked_slots(slots: int, layers: int, experts: int) -> int:
    """`slots` as given, if the model has that many experts."""
    if not 1 <= slots <= layers * experts:
        raise UserError(
            f"slots={slots}: must be 1..{layers * experts} ({layers} layers x {experts} experts)"
        )
    return slots


def slots_from_vram(
    hardware: HardwareProfile,
    model: ModelProfile,
    draft: DraftProfile,
    context: int,
    staging: int,
    dtype: str | None = None,
) -> int:
    """(VRAM - reserved - dense - KV - draft - staging) / expert bytes, at most all experts.

    `context`: tokens of KV. UserError with the sum if nothing is left.
    """
    parts = {
        "reserved": hardware.gpu.reserved_bytes,
        "dense": model.dense_bytes,
        "KV": context * model.kv_bytes_per_token,
        "draft": draft.bytes + context * draft.kv_bytes_per_token,
        "staging": staging * model.bytes_of_expert(dtype),
    }
    left = hardware.gpu.vram_bytes - sum(parts.values())
    slots = left // model.bytes_of_expert(dtype)
    if slots < 1:
        listed = ", ".join(f"{name} {size / 1e9:.2f}" for name, size in parts.items())
        raise UserError(
            f"budget=vram: {hardware.gpu.vram_bytes / 1e9:.2f} GB less {listed} leaves "
            f"{left / 1e9:.2f} GB, no room for an expert; "
            "shorten the context, or use a smaller draft or dtype"
        )
    return min(slots, model.moe_layers * model.experts)


def scale_slots(slots: int, model: ModelProfile, layers: int, experts: int) -> int:
    """The share that `slots` are of the model's experts, of a trace's layers x experts.

    For replaying a small trace "as if" it were a big model.
    """
    scaled = slots * layers * experts // (model.moe_layers * model.experts)
    if scaled < 1:
        raise UserError(
            f"{slots} slots of model {model.name} are less than one of {layers} x {experts} "
            "experts; give slots= or cache_ratio= instead"
        )
    return scaled
