"""Every part of every expert of a checkpoint, exactly once and of the right shape, or a UserError.

Made from the headers of the files, so that nothing is read or allocated for a checkpoint that does
not fit.
"""

from dataclasses import dataclass
from pathlib import Path

from policies.errors import UserError
from runtime.checkpoints import CheckpointFacts
from runtime.expert_names import ExpertTensor
from runtime.family import Family
from runtime.weight_files import StoredTensor, stored_tensors

Part = tuple[int, int, str]  # place of the MoE layer, expert, part


@dataclass(frozen=True)
class ExpertInventory:
    """`tensors`: the experts' tensors by name. `layers`: model layer -> place among MoE layers."""

    path: Path
    tensors: dict[str, ExpertTensor]
    layers: dict[int, int]


def take_inventory(facts: CheckpointFacts) -> ExpertInventory:
    """Check all expert tensors of a target; UserError names the first that does not fit."""
    family = facts.target_family
    layers = {number: place for place, number in enumerate(facts.moe_layers)}
    tensors: dict[str, ExpertTensor] = {}
    owners: dict[Part, str] = {}
    for name, stored in stored_tensors(facts.path).items():
        tensor = _parsed(facts, family, name)
        if tensor is None:
            continue
        _check_shape(facts, tensor, stored)
        _check_place(facts, tensor, layers)
        for part in _parts(tensor, layers[tensor.layer], facts.experts):
            if part in owners:
                raise UserError(
                    f"{facts.path}: {_called(part, facts)} comes twice, in {owners[part]} and "
                    f"{name}; download the checkpoint again"
                )
            owners[part] = name
        tensors[name] = tensor
    _check_complete(facts, family, owners)
    return ExpertInventory(facts.path, tensors, layers)


def _parsed(facts: CheckpointFacts, family: Family, name: str) -> ExpertTensor | None:
    try:
        return family.names.parse(name)
    except KeyError:
        raise UserError(
            f"{facts.path}: tensor {name} lies among the experts but is not known to "
            f"{family.model_type}; quantised experts are not supported, use the bf16 checkpoint"
        ) from None


def _check_shape(facts: CheckpointFacts, tensor: ExpertTensor, stored: StoredTensor) -> None:
    expected = tensor.shape(facts.experts, facts.hidden, facts.expert_width)
    if stored.shape != expected:
        raise UserError(
            f"{facts.path}: {tensor.name} has shape {list(stored.shape)}, "
            f"{'/'.join(tensor.parts)} must be {list(expected)}; "
            "are projections exchanged?"
        )


def _check_place(facts: CheckpointFacts, tensor: ExpertTensor, layers: dict[int, int]) -> None:
    if tensor.layer not in layers or (tensor.expert or 0) >= facts.experts:
        raise UserError(
            f"{facts.path}: {tensor.name}, but config.json has {facts.experts} experts "
            f"in layers {list(layers)}; the files do not belong together"
        )


def _parts(tensor: ExpertTensor, place: int, experts: int) -> list[Part]:
    numbers = range(experts) if tensor.expert is None else (tensor.expert,)
    return [(place, number, part) for number in numbers for part in tensor.parts]


def _check_complete(facts: CheckpointFacts, family: Family, owners: dict[Part, str]) -> None:
    missing = [
        (place, expert, part)
        for place in range(len(facts.moe_layers))
        for expert in range(facts.experts)
        for part in family.names.parts
        if (place, expert, part) not in owners
    ]
    if missing:
        raise UserError(
            f"{facts.path}: {len(missing)} expert projections missing, first "
            f"{_called(missing[0], facts)}; download it again"
        )


def _called(part: Part, facts: CheckpointFacts) -> str:
    place, expert, name = part
    return f"{name} of layer {facts.moe_layers[place]}, expert {expert}"
