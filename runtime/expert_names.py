"""Where the parts of every expert stand in a checkpoint, by one explicit table per way of naming.

A name that fits no table is refused: guessing is how gate, up and down get exchanged.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import torch

GATE, UP, DOWN = "gate", "up", "down"
GATE_BIAS, UP_BIAS, DOWN_BIAS = "gate bias", "up bias", "down bias"
PROJECTIONS = (GATE, UP, DOWN)
BIASES = (GATE_BIAS, UP_BIAS, DOWN_BIAS)

_ONE = re.compile(r"^(\d+)\.([\w.]+)$")


def _fixed(table: dict[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType(table)


# As transformers 5 holds all experts of a layer.
FUSED = _fixed({"gate_up_proj": (GATE, UP), "down_proj": (DOWN,)})
FUSED_WITH_BIASES = _fixed(
    dict(FUSED) | {"gate_up_proj_bias": (GATE_BIAS, UP_BIAS), "down_proj_bias": (DOWN_BIAS,)}
)
GATE_UP_DOWN = _fixed(
    {"gate_proj.weight": (GATE,), "up_proj.weight": (UP,), "down_proj.weight": (DOWN,)}
)
W1_W3_W2 = _fixed({"w1.weight": (GATE,), "w3.weight": (UP,), "w2.weight": (DOWN,)})


@dataclass(frozen=True)
class ExpertNames:
    """How one family names and stores its experts.

    block: module of a layer that holds them; split: names of one expert's tensors, after its
    number; fused: names of tensors that stack all experts of a layer, of which `transposed` ones
    have inputs before outputs, and `interleaved` ones alternate gate and up along the outputs
    instead of stacking gate before up.
    """

    block: str = "mlp"
    split: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: GATE_UP_DOWN)
    fused: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: FUSED)
    transposed: bool = False
    interleaved: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        """What an expert consists of."""
        biased = any(part in BIASES for parts in self.fused.values() for part in parts)
        return PROJECTIONS + BIASES if biased else PROJECTIONS

    def is_expert(self, name: str) -> bool:
        """True if the tensor lies among the experts of a layer, known or not."""
        try:
            return self.parse(name) is not None
        except KeyError:
            return True

    def parse(self, name: str) -> "ExpertTensor | None":
        """What the tensor `name` holds of an expert, None if it is no expert's, KeyError if it lies
        among the experts but fits no table.
        """
        found = re.match(rf"^model\.layers\.(\d+)\.{self.block}\.experts\.(.+)$", name)
        if found is None:
            return None
        layer, rest = int(found.group(1)), found.group(2)
        if rest in self.fused:
            parts = self.fused[rest]
            return ExpertTensor(name, layer, None, parts, self.transposed, self.interleaved)
        one = _ONE.match(rest)
        if one is None or one.group(2) not in self.split:
            raise KeyError(name)
        return ExpertTensor(name, layer, int(one.group(1)), self.split[one.group(2)])


@dataclass(frozen=True)
class ExpertTensor:
    """One tensor of a checkpoint. `layer` counts all layers of the model; `expert` is None where
    the tensor stacks all experts of the layer.
    """

    name: str
    layer: int
    expert: int | None
    parts: tuple[str, ...]
    transposed: bool = False
    interleaved: bool = False

    def shape(self, experts: int, hidden: int, width: int) -> tuple[int, ...]:
        """The shape that it must have."""
        outputs = (hidden if self.parts[0] in (DOWN, DOWN_BIAS) else width) * len(self.parts)
        if self.parts[0] in BIASES:
            one: tuple[int, ...] = (outputs,)
        else:
            inputs = width if self.parts == (DOWN,) else hidden
            one = (inputs, outputs) if self.transposed else (outputs, inputs)
        return one if self.expert is not None else (experts, *one)

    def split(self, values: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
        """The parts of one expert's `values`, outputs first: gate and up [width, hidden], down
        [hidden, width], biases [outputs].
        """
        outputs_first = values.T if self.transposed and values.dim() == 2 else values
        count = len(self.parts)
        for place, part in enumerate(self.parts):
            if self.interleaved:
                yield part, outputs_first[place::count]
            else:
                yield part, outputs_first.chunk(count)[place]
