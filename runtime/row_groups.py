"""Which rows of a pass go to which expert, and where in the row's contributions they belong."""

from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class RowGroup:
    """Rows of one expert: `rows` int64 [n] in ascending order, `places` int64 [n] (which of the
    row's top-k choices it is).
    """

    rows: torch.Tensor
    places: torch.Tensor

    def to(self, device: torch.device) -> "RowGroup":
        """The same group as index of tensors on `device`."""
        return RowGroup(self.rows.to(device), self.places.to(device))


def group_rows(experts: np.ndarray) -> dict[int, RowGroup]:
    """experts int [rows, k] -> group by expert number, ascending."""
    order = np.argsort(experts, axis=None, kind="stable")
    rows, places = np.divmod(order, experts.shape[1])
    numbers, begins = np.unique(experts.ravel()[order], return_index=True)
    ends = np.append(begins[1:], len(order))
    return {
        int(number): RowGroup(
            torch.from_numpy(rows[begin:end]), torch.from_numpy(places[begin:end])
        )
        for number, begin, end in zip(numbers, begins, ends, strict=True)
    }
