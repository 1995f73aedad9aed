"""All experts in host memory: one block of bytes, filled once from safetensors."""

from pathlib import Path

import torch

from policies.errors import UserError
from runtime.checkpoints import CheckpointFacts, weight_files
from runtime.device import Device
from runtime.expert_layout import ExpertLayout
from runtime.expert_names import PROJECTIONS, ExpertTensor, parse_expert_tensor
from runtime.memory_plan import check_reservation


class HostArena:
    """`rows` uint8 [layers * experts, row_bytes], by flat key."""

    def __init__(self, layout: ExpertLayout, rows: torch.Tensor) -> None:
        self.layout, self.rows = layout, rows

    def gate_up(self, expert: int) -> torch.Tensor:
        """[2 * width, hidden] of the expert (flat key)."""
        return self.layout.gate_up(self.rows[expert])

    def down(self, expert: int) -> torch.Tensor:
        """[hidden, width] of the expert (flat key)."""
        return self.layout.down(self.rows[expert])

    def bytes_of(self, expert: int) -> torch.Tensor:
        """uint8 [expert_bytes]: what a copy of the expert (flat key) moves."""
        return self.rows[expert, : self.layout.expert_bytes]


def load_arena(facts: CheckpointFacts, layout: ExpertLayout, device: Device) -> HostArena:
    """Read every expert of a checkpoint, converted to the layout's dtype.

    UserError if a name is unknown, a shape is wrong, or a projection is missing or comes twice.
    """
    size = layout.total * layout.row_bytes
    check_reservation(1, size, device.reserved_bytes)
    rows = device.alloc_host(size).view(layout.total, layout.row_bytes)
    loader = _Loader(facts, layout, rows)
    for file in weight_files(facts.path):
        loader.read(file)
    loader.check_complete()
    return HostArena(layout, rows)


class _Loader:
    """Keeps account of what was written."""

    def __init__(self, facts: CheckpointFacts, layout: ExpertLayout, rows: torch.Tensor) -> None:
        self._facts, self._layout, self._rows = facts, layout, rows
        self._place = {number: place for place, number in enumerate(facts.moe_layers)}
        self._written: set[tuple[int, str]] = set()

    def read(self, file: Path) -> None:
        from safetensors import SafetensorError, safe_open

        try:
            # One shard at a time: a mapped file keeps its pages as long as it is open.
            with safe_open(str(file), framework="pt") as shard:
                for name in shard.keys():  # noqa: SIM118 (a shard is not a dict)
                    tensor = self._parse(name)
                    if tensor is not None:
                        self._store(tensor, shard.get_tensor(name))
        except SafetensorError as error:
            raise UserError(f"{file}: unreadable weights ({error}); download it again") from None

    def _parse(self, name: str) -> ExpertTensor | None:
        try:
            return parse_expert_tensor(name)
        except KeyError:
            raise UserError(
                f"{self._facts.path}: tensor {name} lies among the experts but is not known; "
                "quantised or biased experts are not supported"
            ) from None

    def _store(self, tensor: ExpertTensor, values: torch.Tensor) -> None:
        layout = self._layout
        expected = tensor.shape(layout.experts, layout.hidden, layout.width)
        if tuple(values.shape) != expected:
            raise UserError(
                f"{self._facts.path}: {tensor.name} has shape {list(values.shape)}, "
                f"{'/'.join(tensor.projections)} must be {list(expected)}; "
                "are projections exchanged?"
            )
        if tensor.layer not in self._place or (tensor.expert or 0) >= layout.experts:
            raise UserError(
                f"{self._facts.path}: {tensor.name}, but config.json has {layout.experts} experts "
                f"in layers {list(self._place)}; the files do not belong together"
            )
        first = self._place[tensor.layer] * layout.experts
        if tensor.expert is not None:
            self._write(first + tensor.expert, tensor, values)
        else:
            for expert in range(layout.experts):
                self._write(first + expert, tensor, values[expert])

    def _write(self, key: int, tensor: ExpertTensor, values: torch.Tensor) -> None:
        for place, projection in enumerate(tensor.projections):
            if (key, projection) in self._written:
                raise UserError(
                    f"{self._facts.path}: the {projection} projection of layer "
                    f"{tensor.layer}, expert {key % self._layout.experts} comes twice"
                )
            self._written.add((key, projection))
            part = values.chunk(len(tensor.projections))[place]
            self._layout.projection(self._rows[key], projection).copy_(part)

    def check_complete(self) -> None:
        missing = [
            (key, projection)
            for key in range(self._layout.total)
            for projection in PROJECTIONS
            if (key, projection) not in self._written
        ]
        if missing:
            layer, expert = divmod(missing[0][0], self._layout.experts)
            raise UserError(
                f"{self._facts.path}: {len(missing)} expert projections missing, first "
                f"{missing[0][1]} of MoE layer {layer}, expert {expert}; download it again"
            )
