"""How an engine is to run: sizes, sampling, mode. Checked before anything is loaded."""

import math
from dataclasses import dataclass
from typing import Literal

from policies.api import Shape
from policies.errors import UserError
from runtime.expert_layout import EXPERT_FORMATS, SAME
from runtime.truncation import ALL_TOKENS, Truncation
from traces.manifest import SamplingInfo

Mode = Literal["live", "logical"]
DEFAULT_CONTEXT = 4096
KEYED = SamplingInfo("keyed", 0.8, 0)


@dataclass(frozen=True)
class EngineSettings:
    """slots, staging: experts that device memory holds at most, in slots and in staging buffers.

    live: decisions see what has landed by then. logical: the link is drained before each decision,
    so that plans depend on no timing. paced: stretch all work to the times of the cost
    table. hardware: name of the profile, for the log. experts: format in which experts are stored,
    see `expert_layout`. context: tokens of a text, drafts included, for which keys and values are
    planned; None: DEFAULT_CONTEXT, or what the model reads if that is less.
    """

    slots: int
    staging: int = 2
    gamma: int = 4
    dtype: str = "float32"
    mode: Mode = "live"
    sampling: SamplingInfo = KEYED
    truncation: Truncation = ALL_TOKENS
    launch_early: bool = False
    paced: bool = False
    hardware: str = "stand-in"
    experts: str = SAME
    context: int | None = None

    def __post_init__(self) -> None:
        if self.mode not in ("live", "logical"):
            raise UserError(f"mode={self.mode} is unknown; use live or logical")
        if self.staging < 0:
            raise UserError(f"staging={self.staging} must not be negative")
        if self.gamma < 0:
            raise UserError(f"gamma={self.gamma} must not be negative")
        if self.experts not in EXPERT_FORMATS:
            raise UserError(
                f"experts={self.experts} is unknown; use one of {', '.join(EXPERT_FORMATS)}"
            )
        if self.context is not None and self.context < 1:
            raise UserError(f"context={self.context} must be at least 1")

    def planned_context(self, max_positions: int) -> int:
        """Tokens for which keys and values are planned; UserError beyond what the model reads."""
        if self.context is None:
            return min(DEFAULT_CONTEXT, max_positions)
        if self.context > max_positions:
            raise UserError(
                f"context={self.context}: the model reads at most {max_positions} tokens"
            )
        return self.context

    def shape(self, layers: int, experts: int, top_k: int) -> Shape:
        """What a policy is told of the sizes."""
        return Shape(
            layers, experts, top_k, self.slots, self.staging, self.gamma, self.launch_early
        )


def check_slots(slots: int, layers: int, experts: int) -> int:
    """`slots`; UserError unless the pool holds at least one expert and at most all."""
    if not 1 <= slots <= layers * experts:
        raise UserError(
            f"slots={slots}: must be 1..{layers * experts} ({layers} layers x {experts} experts)"
        )
    return slots


def slots_of_ratio(cache_ratio: float, layers: int, experts: int) -> int:
    """Slots for a share of all experts, rounded down; UserError unless 0 < share <= 1."""
    if not 0.0 < cache_ratio <= 1.0:
        raise UserError(f"cache_ratio={cache_ratio} must be above 0 and at most 1")
    slots = math.floor(cache_ratio * layers * experts + 1e-9)
    if slots < 1:
        raise UserError(
            f"cache_ratio={cache_ratio} of {layers} x {experts} experts is less than one slot; "
            f"use at least {1 / (layers * experts):.4f}"
        )
    return slots
