"""ForcedRouting: puts the routing of a trace in the place of what a model's routers chose."""

from collections.abc import Callable

import numpy as np
import torch

from runtime.next_layers import NextLayers
from traces.window import Window

Forward = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class ForcedRouting:
    """`show` a window before the target reads its rows, `hide` before it reads anything else. The
    routers are computed all the same: their time is part of a layer.
    """

    def __init__(self, place: torch.device) -> None:
        self._place = place
        self._experts: torch.Tensor | None = None
        self._weights: torch.Tensor | None = None
        self.predicted: torch.Tensor | None = None

    def show(self, window: Window) -> None:
        """The rows that the target reads next are those of `window`."""
        experts = torch.from_numpy(window.experts.astype(np.int64))
        self._experts = experts.to(self._place)
        self._weights = torch.full(experts.shape, 1.0 / experts.shape[-1], device=self._place)
        if window.weights is not None:
            self._weights = torch.from_numpy(window.weights.astype(np.float32)).to(self._place)
        self.predicted = None
        if window.next_layer is not None:
            predicted = torch.from_numpy(window.next_layer.astype(np.int32))
            self.predicted = predicted.to(self._place)

    def hide(self) -> None:
        """The rows to come belong to no window: their experts are left out."""
        self._experts = self._weights = self.predicted = None

    def around(self, forward: Forward) -> Forward:
        """`forward(layer, hidden, experts, weights)` with the trace's experts and weights."""

        def forced(
            layer: int, hidden: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor
        ) -> torch.Tensor:
            if self._experts is None or self._weights is None:
                return torch.zeros_like(hidden)
            mine = self._weights[:, layer].to(weights.dtype)
            return forward(layer, hidden, self._experts[:, layer], mine)

        return forced


class ForcedNextLayers(NextLayers):
    """Computes the prediction of the model's routers, for the time it takes, and answers with the
    trace's.
    """

    def __init__(self, own: NextLayers, routing: ForcedRouting, horizon: int) -> None:
        self._own, self._routing, self._horizon = own, routing, horizon

    def predict(self, layer: int, hidden: torch.Tensor) -> torch.Tensor | None:
        self._own.predict(layer, hidden)
        if self._horizon == 0 or self._routing.predicted is None:
            return None
        return self._routing.predicted[: self._horizon, :, layer]
