"""What every lane of one layer reads, and where each puts its results."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class LayerInputs:
    """hidden [rows, H], experts int [rows, k], weights [rows, k], all on the device.

    contributions [rows, k, H]: what each chosen expert gave, filled by the lanes.
    """

    layer: int
    hidden: torch.Tensor
    experts: torch.Tensor
    weights: torch.Tensor
    contributions: torch.Tensor


def layer_inputs(
    layer: int, hidden: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor
) -> LayerInputs:
    """With room for the contributions."""
    rows, top_k = experts.shape
    empty = hidden.new_empty(rows, top_k, hidden.shape[1])
    return LayerInputs(layer, hidden, experts, weights, empty)
