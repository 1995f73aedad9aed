"""Which tokens of a server's forward passes belong to one request, by their positions alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError


@dataclass
class _Open:
    """A request that may go on: its last position, and whether it has generated already."""

    last: int
    started: bool = False


class SequenceChain:
    """Passes are added in their order; afterwards each token has a request.

    A piece of an extend pass begins a request at position 0 or after a cached prefix, or continues
    the one open request whose prompt ended before it (chunked prefill). A token of a decode pass
    continues the one request that ended at the position before. All running requests take part
    in a decode pass, so those left out are over, and one whose prompt has just been read goes
    before one that may be over. Where two remain, their tokens cannot be told apart: UserError.
    """

    def __init__(self) -> None:
        self._open: dict[int, _Open] = {}
        self._count = 0
        self._request: list[NDArray[np.int64]] = []
        self._position: list[NDArray[np.int64]] = []
        self._token: list[NDArray[np.int64]] = []
        self._prompt: list[NDArray[np.bool_]] = []

    def extend(
        self,
        token: NDArray[np.int64],
        position: NDArray[np.int64],
        lengths: NDArray[np.int64],
        where: str,
    ) -> None:
        """Add a pass over pieces of prompts, `lengths` tokens each."""
        begin = 0
        for length in lengths.tolist():
            piece = position[begin : begin + length]
            if (np.diff(piece) != 1).any():
                raise UserError(f"{where}: positions of a sequence do not count by one")
            before = int(piece[0]) - 1
            waiting = [
                number
                for number, one in self._open.items()
                if one.last == before and not one.started
            ]
            if len(waiting) > 1:
                raise self._alike(before, where)
            request = waiting[0] if waiting and before >= 0 else self._begin()
            self._open[request] = _Open(int(piece[-1]))
            self._add(request, token[begin : begin + length], piece, prompt=True)
            begin += length

    def decode(self, token: NDArray[np.int64], position: NDArray[np.int64], where: str) -> None:
        """Add a pass with one generated token of each running request."""
        still: dict[int, _Open] = {}
        for at, one in zip(position.tolist(), token.tolist(), strict=True):
            request = self._continued(at - 1, where)
            if request in still or (position == at).sum() > 1:
                raise self._alike(at - 1, where)
            still[request] = _Open(at, started=True)
            self._add(request, np.asarray([one]), np.asarray([at]), prompt=False)
        waiting = {
            number: one
            for number, one in self._open.items()
            if number not in still and not one.started
        }
        self._open = waiting | still

    def order(self) -> NDArray[np.int64]:
        """The order of rows that puts requests one after the other."""
        return np.lexsort((self.position, self.request))

    @property
    def request(self) -> NDArray[np.int64]:
        """int64 [tokens], in the order of the passes."""
        return np.concatenate(self._request)

    @property
    def position(self) -> NDArray[np.int64]:
        """int64 [tokens]."""
        return np.concatenate(self._position)

    @property
    def token(self) -> NDArray[np.int64]:
        """int64 [tokens]."""
        return np.concatenate(self._token)

    @property
    def prompt(self) -> NDArray[np.bool_]:
        """bool [tokens]."""
        return np.concatenate(self._prompt)

    def _continued(self, last: int, where: str) -> int:
        found = [number for number, one in self._open.items() if one.last == last]
        fresh = [number for number in found if not self._open[number].started]
        chosen = fresh or found
        if len(chosen) > 1:
            raise self._alike(last, where)
        # Recording may begin in the middle of a text.
        return chosen[0] if chosen else self._begin()

    def _begin(self) -> int:
        self._count += 1
        return self._count - 1

    def _add(
        self,
        request: int,
        token: NDArray[np.int64],
        position: NDArray[np.int64],
        prompt: bool,
    ) -> None:
        self._request.append(np.full(len(token), request))
        self._position.append(position)
        self._token.append(token)
        self._prompt.append(np.full(len(token), prompt))

    def _alike(self, last: int, where: str) -> UserError:
        return UserError(
            f"{where}: two requests stand at position {last}, and the recorder does not say which "
            "token is whose; record with --max-running-requests 1"
        )
