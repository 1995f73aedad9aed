"""A synthetic replay of any length, made request by request, for timing: no result may rest on
it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traces.manifest import ModelInfo
from traces.request_arrays import RequestArrays, request_arrays
from traces.rows import DECODE, RowBatch, build_rows
from traces.window import Window, cut_window


@dataclass(frozen=True)
class BankShape:
    """Each layer has `bank` sets of top-K experts; a row keeps the set of the row before with
    probability `reuse`, else it draws one, popular sets more often."""

    layers: int = 48
    experts: int = 128
    top_k: int = 8
    requests: int = 4
    tokens: int = 512
    bank: int = 256
    reuse: float = 0.3
    acceptance: float = 0.75
    gamma_limit: int = 16


class BankReplay:
    """See traces.replay.Replay. Windows are rows of the text, as in a text trace. One request is in
    memory at a time."""

    kind = "text"
    approximate = True
    fixed_gamma: int | None = None
    columns: frozenset[str] = frozenset({"router_weights", "next_layer_1"})

    def __init__(self, shape: BankShape, seed: int = 0) -> None:
        self.shape = shape
        self.seed = seed
        self.model = ModelInfo("bank", shape.layers, shape.experts, shape.top_k, 1 << 20)
        self.gamma_limit = shape.gamma_limit
        self.request_ids = tuple(range(shape.requests))
        random = np.random.default_rng(seed)
        popularity = random.gumbel(size=(shape.layers, 1, shape.experts))
        score = popularity + random.gumbel(size=(shape.layers, shape.bank, shape.experts))
        order = np.argpartition(-score, shape.top_k, axis=2)[..., : shape.top_k]
        self._bank = order.astype(np.uint16)
        self._held = -1
        self._rows: RowBatch | None = None
        self._longest = np.zeros(0, np.int64)

    def prompt(self, request: int) -> NDArray[np.int32]:
        """No prompt."""
        return np.zeros(0, np.int32)

    def prompt_length(self, request: int) -> int:
        """No prompt."""
        return 0

    def prefill(self, request: int) -> None:
        """No prefill."""
        return None

    def first(self, request: int) -> int:
        """Position of the first token."""
        return 0

    def end(self, request: int) -> int:
        """Number of tokens."""
        return self.shape.tokens

    def window(self, request: int, start: int, gamma: int) -> Window:
        """See traces.replay.Replay."""
        rows = self._request(request)
        gamma = min(gamma, self.shape.tokens - start - 1)
        accepted = min(int(self._longest[start]), gamma)
        return cut_window(rows, start, gamma, accepted, accepted + 1, approximate=True)

    def arrays(self, request: int) -> RequestArrays:
        """See traces.replay.Replay."""
        rows = self._request(request)
        starts = np.arange(self.shape.tokens)
        left = self.shape.tokens - starts
        return request_arrays(0, starts, self._longest, left - 1, left, rows, None)

    def _request(self, request: int) -> RowBatch:
        if request != self._held or self._rows is None:
            self._rows = self._made(request)
            self._held = request
        return self._rows

    def _made(self, request: int) -> RowBatch:
        shape, random = self.shape, np.random.default_rng([self.seed, request])
        size = (shape.tokens, shape.layers)
        drawn = (shape.bank * random.random(size) ** 2).astype(np.int64)
        fresh = random.random(size) >= shape.reuse
        fresh[0] = True
        latest = np.maximum.accumulate(np.where(fresh, np.arange(shape.tokens)[:, None], 0), axis=0)
        chosen = np.take_along_axis(drawn, latest, axis=0)
        experts = self._bank[np.arange(shape.layers), chosen]
        self._longest = np.minimum(
            random.geometric(1 - shape.acceptance, shape.tokens) - 1, shape.gamma_limit
        )
        following = np.concatenate([experts[:, 1:], np.full_like(experts[:, :1], 0xFFFF)], axis=1)
        return build_rows(
            request=request,
            phase=DECODE,
            start=np.arange(shape.tokens),
            row=0,
            input_token=random.integers(0, 1000, shape.tokens),
            target_choice=0,
            match=False,
            experts=experts,
            router_weights=np.full(experts.shape, 1 / shape.top_k),
            next_layer=following[None],
        )
