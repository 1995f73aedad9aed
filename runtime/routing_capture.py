"""What the routers of a target chose in its last forward, read by forward hooks; the model stays as
it is.
"""

from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from runtime.next_layers import RouterWeights
from runtime.routing_rule import TOP_K, RoutingRule
from traces.rows import FILLER


@dataclass(frozen=True)
class Routing:
    """Router choices of n rows in L MoE layers, K experts each in descending weight.

    experts uint16 [n, L, K]; weights float16 [n, L, K]; next_layer uint16 [H, n, L, K] or None: the
    router of MoE layer l + h applied to the router input of layer l, FILLER where there is no such
    layer; margins float32 [n, L]: router logit of the last expert chosen minus that of the first
    one left out.
    """

    experts: NDArray[np.uint16]
    weights: NDArray[np.float16]
    next_layer: NDArray[np.uint16] | None
    margins: NDArray[np.float32]


class RoutingCapture:
    """Listens to router modules (of each MoE layer, in order) between `__enter__` and `__exit__`.

    A router must return (logits [n, experts], weights [n, K], indices [n, K]), as those of the
    known families do. rule: how it chooses. lookahead: distances h = 1..lookahead to predict;
    costs one small matrix product each, 0 for none.
    """

    def __init__(
        self, routers: list[nn.Module], lookahead: int = 0, rule: RoutingRule = TOP_K
    ) -> None:
        self._routers, self._lookahead, self._rule = routers, lookahead, rule
        self._seen: list[tuple[torch.Tensor, ...]] = []
        self._hooks: list[Any] = []
        self._later = RouterWeights.stacked(routers) if lookahead else None

    def __enter__(self) -> "RoutingCapture":
        self._hooks = [router.register_forward_hook(self._store) for router in self._routers]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def clear(self) -> None:
        """Forget what was captured. Call it before a forward: one that failed leaves some layers
        behind.
        """
        self._seen = []

    @torch.inference_mode()
    def take(self) -> Routing:
        """Routing of the one forward that ran since the last `clear` or `take`."""
        seen, self._seen = self._seen, []
        if len(seen) != len(self._routers):
            raise RuntimeError(f"{len(seen)} router calls captured, expected {len(self._routers)}")
        inputs, logits, weights, indices = (torch.stack(part) for part in zip(*seen, strict=True))
        top_k = indices.shape[-1]
        # DeepSeek-V2 leaves them in no particular order.
        weights, order = torch.sort(weights.float(), dim=-1, descending=True, stable=True)
        indices = indices.gather(-1, order)
        return Routing(
            experts=_rows_first(indices).astype(np.uint16),
            weights=_rows_first(weights).astype(np.float16),
            next_layer=self._predict(inputs, top_k) if self._lookahead else None,
            margins=_rows_first(self._rule.margins(logits.float(), top_k)),
        )

    def _store(self, router: nn.Module, inputs: tuple[torch.Tensor, ...], output: Any) -> None:
        logits, weights, indices = output
        self._seen.append((inputs[0].reshape(len(logits), -1), logits, weights, indices))

    def _predict(self, inputs: torch.Tensor, top_k: int) -> NDArray[np.uint16]:
        assert self._later is not None
        layers, rows, _ = inputs.shape
        predicted = np.full((self._lookahead, rows, layers, top_k), FILLER, np.uint16)
        for distance in range(1, min(self._lookahead, layers - 1) + 1):
            logits = self._later.logits(inputs[:-distance], distance)
            chosen = self._rule.choose(logits.float(), top_k)
            predicted[distance - 1, :, : layers - distance] = _rows_first(chosen)
        return predicted


def _rows_first(tensor: torch.Tensor) -> NDArray[Any]:
    return tensor.transpose(0, 1).contiguous().cpu().numpy()
