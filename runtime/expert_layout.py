"""How one expert lies in memory: gate over up, then down, then what belongs to them, in one row."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch

from policies.errors import UserError
from runtime.checkpoints import CheckpointFacts
from runtime.expert_math import ExpertWeights
from runtime.expert_names import BIASES, DOWN, DOWN_BIAS, GATE, GATE_BIAS, UP, UP_BIAS
from runtime.int8 import quantise

ALIGNMENT = 64  # rows start at cache lines; vector loads of some kernels want that
SAME, INT8 = "same", "int8"  # experts stored in the compute dtype, or as int8 with scales
EXPERT_FORMATS = (SAME, INT8)

# part of a checkpoint -> (what of ExpertWeights it belongs to, which half of that)
_HOMES = {
    GATE: ("gate_up", 0),
    UP: ("gate_up", 1),
    DOWN: ("down", None),
    GATE_BIAS: ("gate_up_bias", 0),
    UP_BIAS: ("gate_up_bias", 1),
    DOWN_BIAS: ("down_bias", None),
}


@dataclass(frozen=True)
class Section:
    """A tensor within a row, from byte `begin` on."""

    name: str
    begin: int
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def end(self) -> int:
        """Byte after the last."""
        return self.begin + math.prod(self.shape) * self.dtype.itemsize

    def view(self, row: torch.Tensor) -> torch.Tensor:
        """The tensor in a row uint8 [row_bytes]."""
        return row[self.begin : self.end].view(self.dtype).view(self.shape)


@dataclass(frozen=True)
class ExpertLayout:
    """Sizes of the experts of one model in the compute dtype. `layers` counts MoE layers only.

    biased: each projection has a bias. quantised: matrices are int8 with a float32 scale per
    output.
    """

    layers: int
    experts: int
    hidden: int
    width: int
    dtype: torch.dtype
    biased: bool = False
    quantised: bool = False

    @cached_property
    def sections(self) -> dict[str, Section]:
        """What a row holds, by the name it has in ExpertWeights."""
        found, begin = {}, 0
        for name, shape, dtype in self._contents():
            begin = -(-begin // dtype.itemsize) * dtype.itemsize
            found[name] = Section(name, begin, shape, dtype)
            begin = found[name].end
        return found

    @cached_property
    def expert_bytes(self) -> int:
        """Bytes that a copy of one expert moves."""
        return max(section.end for section in self.sections.values())

    @cached_property
    def row_bytes(self) -> int:
        """Distance of two experts in memory."""
        return -(-self.expert_bytes // ALIGNMENT) * ALIGNMENT

    @property
    def total(self) -> int:
        """Experts in all layers; a flat key is layer * experts + expert."""
        return self.layers * self.experts

    def weights(self, row: torch.Tensor) -> ExpertWeights:
        """Views of all that a row uint8 [row_bytes] holds."""
        return ExpertWeights(**{name: part.view(row) for name, part in self.sections.items()})

    def gate_up(self, row: torch.Tensor) -> torch.Tensor:
        """View [2 * width, hidden] of a row uint8 [row_bytes]."""
        return self.sections["gate_up"].view(row)

    def down(self, row: torch.Tensor) -> torch.Tensor:
        """View [hidden, width] of a row uint8 [row_bytes]."""
        return self.sections["down"].view(row)

    def store(self, row: torch.Tensor, part: str, values: torch.Tensor) -> None:
        """Write one part of a checkpoint, matrices [outputs, inputs], into a row, converted or
        quantised.
        """
        if self.quantised and part not in BIASES:
            values, scale = quantise(values)
            self._half(row, part, "_scale").copy_(scale)
        self._half(row, part).copy_(values)

    def _half(self, row: torch.Tensor, part: str, suffix: str = "") -> torch.Tensor:
        name, half = _HOMES[part]
        whole = self.sections[name + suffix].view(row)
        return whole if half is None else whole.chunk(2)[half]

    def _contents(self) -> Iterator[tuple[str, tuple[int, ...], torch.dtype]]:
        stored = torch.int8 if self.quantised else self.dtype
        yield "gate_up", (2 * self.width, self.hidden), stored
        yield "down", (self.hidden, self.width), stored
        if self.quantised:
            yield "gate_up_scale", (2 * self.width,), torch.float32
            yield "down_scale", (self.hidden,), torch.float32
        if self.biased:
            yield "gate_up_bias", (2 * self.width,), self.dtype
            yield "down_bias", (self.hidden,), self.dtype


def layout_of(
    facts: CheckpointFacts, dtype: torch.dtype, expert_format: str = SAME
) -> ExpertLayout:
    """The layout of a target's experts; `expert_format` is one of EXPERT_FORMATS."""
    if expert_format not in EXPERT_FORMATS:
        raise UserError(
            f"experts={expert_format} is unknown; use one of {', '.join(EXPERT_FORMATS)}"
        )
    biased = facts.family is not None and set(BIASES) <= set(facts.family.names.parts)
    return ExpertLayout(
        len(facts.moe_layers), facts.experts, facts.hidden, facts.expert_width, dtype,
        biased=biased, quantised=expert_format == INT8,
    )  # fmt: skip
