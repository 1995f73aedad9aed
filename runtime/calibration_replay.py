"""CalibrationReplay: made-up passes in which every active expert has equally many tokens."""

import numpy as np
from numpy.typing import NDArray

from traces.manifest import ModelInfo
from traces.request_arrays import RequestArrays
from traces.rows import FILLER
from traces.window import Window


class CalibrationReplay:
    """See traces.replay.Replay. All `rows` rows of a pass choose the same experts, those of the
    next pass the next ones of the first `span` experts of a layer, round and round: so caches do
    not hold what is measured.

    Each pass commits one token; the first begins after `context` tokens.
    """

    kind = "dense"
    approximate = False
    fixed_gamma: int | None = None
    columns = frozenset({"router_weights", "next_layer_1", "next_layer_2", "next_layer_3"})
    request_ids = (0,)

    def __init__(
        self, model: ModelInfo, rows: int, passes: int, span: int, context: int = 64
    ) -> None:
        self.model = model
        self.gamma_limit = rows - 1
        self._rows, self._passes, self._context = rows, passes, context
        self._span = max(span, model.top_k)

    def prompt(self, request: int) -> NDArray[np.int32]:
        """No prompt."""
        return np.zeros(0, np.int32)

    def prompt_length(self, request: int) -> int:
        """No prompt."""
        return 0

    def prefill(self, request: int) -> None:
        """No prefill."""

    def first(self, request: int) -> int:
        """See Replay."""
        return self._context

    def end(self, request: int) -> int:
        """See Replay."""
        return self._context + self._passes

    def window(self, request: int, start: int, gamma: int) -> Window:
        """See Replay."""
        model, number = self.model, start - self._context
        chosen = (number * model.top_k + np.arange(model.top_k)) % self._span
        shape = (gamma + 1, model.layers, model.top_k)
        predicted = np.full((3, *shape), FILLER, np.uint16)
        for distance in range(1, min(4, model.layers)):
            predicted[distance - 1, :, : model.layers - distance] = chosen
        return Window(
            request=request,
            start=start,
            gamma=gamma,
            tokens=np.zeros(gamma + 1, np.int32),
            choices=np.zeros(gamma + 1, np.int32),
            accepted=0,
            committed=1,
            experts=np.broadcast_to(chosen.astype(np.uint16), shape),
            weights=np.full(shape, 1.0 / model.top_k, np.float16),
            next_layer=predicted,
            approximate=False,
        )

    def arrays(self, request: int) -> RequestArrays:
        """Only engines that really run play this."""
        raise NotImplementedError
