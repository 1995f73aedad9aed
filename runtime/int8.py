"""int8 weights with one scale per output: what an expert loses when it is stored so."""

import torch

LARGEST = 127


def quantise(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """matrix [outputs, inputs] -> int8 of the same shape and scale float32 [outputs], such that
    scale * int8 is nearest to the matrix and no value is clipped.
    """
    values = matrix.float()
    # The floor keeps outputs that are all zero, or nearly, from dividing by zero.
    scale = (values.abs().amax(dim=1) / LARGEST).clamp_min(torch.finfo(torch.float32).tiny)
    whole = torch.round(values / scale[:, None]).clamp_(-LARGEST, LARGEST)
    return whole.to(torch.int8), scale


def rounded(matrix: torch.Tensor) -> torch.Tensor:
    """The matrix [outputs, inputs] as int8 storage gives it back, in its own dtype."""
    whole, scale = quantise(matrix)
    return (whole.float() * scale[:, None]).to(matrix.dtype)
