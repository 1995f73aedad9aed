"""RandomModel: a model of any shape without a checkpoint, in device and host memory.

Weights are random and layers may share them, so its words mean nothing and its times are those of
the shape.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from policies.errors import UserError
from runtime.checkpoints import CheckpointFacts
from runtime.device import Device
from runtime.expert_layout import ExpertLayout
from runtime.expert_math import ExpertWeights
from runtime.families.qwen3_moe import QWEN3_MOE
from runtime.host_arena import HostArena
from runtime.memory_plan import GIB, check_memory, check_reservation, plan_memory
from runtime.model_shape import LONGEST_TEXT, ModelShape, transformers_config
from runtime.target_model import TargetModel

SPREAD = 0.02  # standard deviation of the weights
HOST_SHARE = 0.7  # of the free host memory that experts may take


class CyclicArena(HostArena):
    """`rows` uint8 [distinct * experts, row_bytes]; layer l finds its experts in l mod distinct."""

    def weights(self, expert: int) -> ExpertWeights:
        return super().weights(expert % len(self.rows))

    def gate_up(self, expert: int) -> torch.Tensor:
        return super().gate_up(expert % len(self.rows))

    def down(self, expert: int) -> torch.Tensor:
        return super().down(expert % len(self.rows))

    def bytes_of(self, expert: int) -> torch.Tensor:
        return super().bytes_of(expert % len(self.rows))


class RandomDraft:
    """A draft step: as many products, reading as many bytes, as the profile says."""

    def __init__(self, shape: ModelShape, place: torch.device, dtype: torch.dtype) -> None:
        width = max(1, shape.draft_width)
        self._state = torch.randn(1, width, device=place).to(dtype)
        self._weights = [
            (torch.randn(width, width, device=place) / width**0.5).to(dtype)
            for _ in range(shape.draft_layers)
        ]

    @torch.inference_mode()
    def step(self) -> int:
        """One step; the host gets to know its outcome, as it would get to know the token."""
        state = self._state
        for weight in self._weights:
            state = torch.nn.functional.linear(state, weight)
        return int(state.argmax())


@dataclass(frozen=True)
class RandomModel:
    """Everything that engines on one device can share, one after the other."""

    shape: ModelShape
    dtype: torch.dtype
    device: Device
    arena: CyclicArena
    target: TargetModel
    draft: RandomDraft

    @property
    def note(self) -> str:
        """What is not as in the real model, for output and logs."""
        distinct, layers = self.shape.distinct, self.shape.layers
        if distinct == layers:
            return "random weights"
        return f"random weights, {distinct} distinct layers used in turn for {layers}"


def random_model(
    shape: ModelShape, dtype: torch.dtype, device: Device, slots: int, staging: int, seed: int = 0
) -> RandomModel:
    """Build it; UserError with both numbers if it does not fit. `slots`, `staging`: experts that
    the device must hold besides.
    """
    shape = fitting(shape, dtype, device.memory().host_available)
    layout = shape.layout(dtype)
    host = shape.distinct * shape.experts * layout.row_bytes
    plan = plan_memory(layout, slots, staging, _dense_bytes(shape, dtype))
    check_memory(replace(plan, host=host), device.memory())
    torch.manual_seed(seed)
    arena = _arena(shape, layout, device)
    target = _target(shape, dtype, device.torch_device)
    draft = RandomDraft(shape, device.torch_device, dtype)
    return RandomModel(shape, dtype, device, arena, target, draft)


def fitting(shape: ModelShape, dtype: torch.dtype, host_bytes: int) -> ModelShape:
    """The shape with as many distinct layers as fit in a share of the free host memory."""
    layer = shape.experts * shape.layout(dtype).row_bytes
    room = int(HOST_SHARE * host_bytes) // layer
    if room < 1:
        raise UserError(
            f"one layer of {shape.name} needs {layer / GIB:.2f} GiB of host memory, "
            f"{host_bytes / GIB:.2f} GiB are free; choose a smaller model, or a smaller dtype"
        )
    return replace(shape, distinct=min(shape.distinct, shape.layers, room))


def _dense_bytes(shape: ModelShape, dtype: torch.dtype) -> int:
    queries, keys = shape.heads * shape.head_width, shape.key_heads * shape.head_width
    layer = shape.hidden * (2 * queries + 2 * keys + shape.experts)
    draft = shape.draft_layers * shape.draft_width**2
    dense = shape.distinct * layer + shape.vocabulary * shape.hidden
    return (dense + draft) * dtype.itemsize


def _arena(shape: ModelShape, layout: ExpertLayout, device: Device) -> CyclicArena:
    count = shape.distinct * shape.experts
    size = count * layout.row_bytes
    check_reservation(1, size, device.reserved_bytes)
    rows = device.alloc_host(size, layout.row_bytes).view(count, layout.row_bytes)
    first = rows[0]
    first.zero_()
    for part in (layout.gate_up(first), layout.down(first)):
        part.copy_(SPREAD * torch.randn(part.shape))
    # Equal numbers at different places: only the places matter for caches and links.
    rows[1:] = first
    return CyclicArena(layout, rows)


def _target(shape: ModelShape, dtype: torch.dtype, place: torch.device) -> TargetModel:
    from transformers import Qwen3MoeForCausalLM

    config = transformers_config(shape, dtype)
    with torch.device("meta"):
        module: Any = Qwen3MoeForCausalLM(config)
    weights: dict[str, torch.Tensor] = {}
    for name, value in module.state_dict().items():
        if ".mlp.experts." not in name and name != "lm_head.weight":
            weights[name] = _weight(name, value.shape, shape, dtype, place, weights)
    module.load_state_dict(weights, strict=False, assign=True)
    module.tie_weights()
    # Its frequencies are computed, not stored, and were computed on the meta device.
    module.model.rotary_emb = type(module.model.rotary_emb)(config).to(place)
    return TargetModel(module.eval().requires_grad_(False), _facts(shape))


def _weight(
    name: str,
    size: torch.Size,
    shape: ModelShape,
    dtype: torch.dtype,
    place: torch.device,
    made: dict[str, torch.Tensor],
) -> torch.Tensor:
    """A new random tensor, or that of the layer whose turn it is."""
    parts = name.split(".")
    if parts[1] == "layers" and int(parts[2]) >= shape.distinct:
        parts[2] = str(int(parts[2]) % shape.distinct)
        return made[".".join(parts)]
    if len(size) == 1:
        return torch.ones(size, dtype=dtype, device=place)
    return (SPREAD * torch.randn(size, device=place)).to(dtype)


def _facts(shape: ModelShape) -> CheckpointFacts:
    return CheckpointFacts(
        path=Path(shape.name),
        name=shape.name,
        architecture=QWEN3_MOE.architecture,
        layers=shape.layers,
        hidden=shape.hidden,
        vocabulary=shape.vocabulary,
        max_positions=LONGEST_TEXT,
        end_tokens=frozenset(),
        moe_layers=tuple(range(shape.layers)),
        experts=shape.experts,
        top_k=shape.top_k,
        expert_width=shape.expert_width,
        family=QWEN3_MOE,
    )
