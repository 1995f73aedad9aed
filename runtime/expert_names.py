"""Where the three projections of every expert stand in a checkpoint, by explicit tables.

A name that fits no table is refused: guessing is how gate, up and down get exchanged.
"""

import re
from dataclasses import dataclass

GATE, UP, DOWN = "gate", "up", "down"
PROJECTIONS = (GATE, UP, DOWN)

_EXPERT = re.compile(r"^model\.layers\.(\d+)\.(?:mlp|block_sparse_moe)\.experts\.(.+)$")
_ONE = re.compile(r"^(\d+)\.(\w+)\.weight$")
_BY_NAME = {
    "gate_proj": GATE,
    "up_proj": UP,
    "down_proj": DOWN,
    "w1": GATE,
    "w3": UP,
    "w2": DOWN,
}
_FUSED = {"gate_up_proj": (GATE, UP), "down_proj": (DOWN,)}


@dataclass(frozen=True)
class ExpertTensor:
    """One tensor of a checkpoint. `layer` counts all layers of the model; `expert` is None where
    the tensor stacks all experts of the layer; two projections where it stacks gate over up.
    """

    name: str
    layer: int
    expert: int | None
    projections: tuple[str, ...]

    def shape(self, experts: int, hidden: int, width: int) -> tuple[int, ...]:
        """The shape that it must have: gate and up [width, hidden], down [hidden, width]."""
        one = (hidden, width) if self.projections == (DOWN,) else (width, hidden)
        stacked = (one[0] * len(self.projections), one[1])
        return stacked if self.expert is not None else (experts, *stacked)


def is_expert_tensor(name: str) -> bool:
    """True if the tensor lies among the experts of a layer, known or not."""
    return _EXPERT.match(name) is not None


def parse_expert_tensor(name: str) -> ExpertTensor | None:
    """What the tensor `name` holds of an expert, None if it is no expert's, KeyError if it lies
    among the experts but fits no table.
    """
    found = _EXPERT.match(name)
    if found is None:
        return None
    layer, rest = int(found.group(1)), found.group(2)
    if rest in _FUSED:
        return ExpertTensor(name, layer, None, _FUSED[rest])
    one = _ONE.match(rest)
    if one is None or one.group(2) not in _BY_NAME:
        raise KeyError(name)
    return ExpertTensor(name, layer, int(one.group(1)), (_BY_NAME[one.group(2)],))
