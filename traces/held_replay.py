"""HeldReplay: a replay whose requests are read once and then kept, for many runs on one trace."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traces.replay import Replay
from traces.request_arrays import RequestArrays
from traces.window import Window

LIMIT_BYTES = 1 << 29  # beside what else a process holds, well below 1.5 GiB


@dataclass(frozen=True)
class _Held:
    prompt: NDArray[np.int32]
    arrays: RequestArrays
    end: int


class HeldReplay:
    """See traces.replay.Replay. The requests first asked for are kept, up to `limit_bytes` in all;
    others are read each time."""

    def __init__(self, replay: Replay, limit_bytes: int = LIMIT_BYTES) -> None:
        self._replay = replay
        self._left = limit_bytes
        self._held: dict[int, _Held] = {}
        self.model = replay.model
        self.kind = replay.kind
        self.gamma_limit = replay.gamma_limit
        self.fixed_gamma = replay.fixed_gamma
        self.approximate = replay.approximate
        self.columns = replay.columns
        self.request_ids = replay.request_ids

    def prompt(self, request: int) -> NDArray[np.int32]:
        """See Replay."""
        return self._request(request).prompt

    def prompt_length(self, request: int) -> int:
        """See Replay."""
        return self._replay.prompt_length(request)

    def prefill(self, request: int) -> NDArray[np.uint16] | None:
        """See Replay."""
        return self._request(request).arrays.prefill

    def first(self, request: int) -> int:
        """See Replay."""
        return self._request(request).arrays.first

    def end(self, request: int) -> int:
        """See Replay."""
        return self._request(request).end

    def window(self, request: int, start: int, gamma: int) -> Window:
        """See Replay; cut out of the arrays by their rule."""
        arrays = self.arrays(request)
        place, end = start - arrays.first, len(arrays.begin)
        if not self._can_start(arrays, place, gamma):
            return self._replay.window(request, start, gamma)  # which says why not
        gamma = min(gamma, int(arrays.gamma_limit[place]))
        accepted = min(int(arrays.longest[place]), gamma, end - place)
        first = int(arrays.begin[place])
        rows = slice(first, first + gamma + 1)
        weights, next_layer = arrays.weights, arrays.next_layer
        return Window(
            request, start, gamma, arrays.tokens[rows], arrays.choices[rows], accepted,
            min(accepted + 1, int(arrays.commit_limit[place])), arrays.experts[rows],
            None if weights is None else weights[rows],
            None if next_layer is None else next_layer[:, rows], self.approximate,
        )  # fmt: skip

    def _can_start(self, arrays: RequestArrays, place: int, gamma: int) -> bool:
        if not 0 <= gamma <= self.gamma_limit or self.fixed_gamma not in (None, gamma):
            return False
        return 0 <= place < len(arrays.begin) and arrays.begin[place] >= 0

    def arrays(self, request: int) -> RequestArrays:
        """See Replay."""
        return self._request(request).arrays

    def _request(self, request: int) -> _Held:
        held = self._held.get(request)
        if held is None:
            arrays = self._replay.arrays(request)
            held = _Held(self._replay.prompt(request), arrays, self._replay.end(request))
            size = held.prompt.nbytes + sum(
                part.nbytes for part in arrays if isinstance(part, np.ndarray)
            )
            if size <= self._left:
                self._left -= size
                self._held[request] = held
        return held
