"""Keys and values of the tokens seen so far, preallocated, with rollback."""

from __future__ import annotations

import torch

from runtime.training.recipe import NetworkShape


class KeyValueCache:
    """``length`` tokens are valid; set it to a smaller number to forget the rest."""

    def __init__(self, shape: NetworkShape, batch: int, capacity: int) -> None:
        size = (shape.layers, batch, shape.key_value_heads, capacity, shape.head_width)
        self.keys = torch.zeros(size)
        self.values = torch.zeros(size)
        self.length = 0

    def extend(
        self, layer: int, key: torch.Tensor, value: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store float[B, heads, T, width] behind the valid tokens and return all of them.

        The network advances ``length`` once per pass, after the last layer.
        """
        end = self.length + key.shape[2]
        self.keys[layer, :, :, self.length : end] = key
        self.values[layer, :, :, self.length : end] = value
        return self.keys[layer, :, :, :end], self.values[layer, :, :, :end]
