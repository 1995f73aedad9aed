"""What every lane of one layer reads, and where each puts its results."""

from typing import NamedTuple

import torch


class LayerInputs(NamedTuple):
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
    empty = torch.empty((rows, top_k, hidden.shape[1]), dtype=hidden.dtype, device=hidden.device)
    return LayerInputs(layer, hidden, experts, weights, empty)
