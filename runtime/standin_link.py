"""The slow link of the stand-in: bytes really move, chunk by chunk, at the rate of a profile."""

import threading
import time
from collections import deque
from dataclasses import dataclass

import torch

from policies.errors import UserError

LEAST_CHUNK = 16 * 1024
# Where the chunks of a copy end, as shares of its bytes. Few, as each wakes a thread and takes the
# interpreter from lanes that no real link would stop; the last is short, so that copies land in
# time.
CHUNKS = (0.5, 0.95, 1.0)
REMEMBERED = 256  # copies whose times are kept


@dataclass(frozen=True)
class Link:
    """A copy takes latency_ns + bytes / bytes_per_second; None: as fast as memory allows."""

    bytes_per_second: float | None = None
    latency_ns: int = 0

    def __post_init__(self) -> None:
        if self.bytes_per_second is not None and not self.bytes_per_second > 0:
            raise UserError(
                f"link: {self.bytes_per_second} bytes per second must be above 0, or null for no "
                "limit"
            )
        if self.latency_ns < 0:
            raise UserError(f"link: latency of {self.latency_ns} ns must not be negative")

    def duration_ns(self, size: int) -> int:
        """Time of one copy of `size` bytes."""
        if self.bytes_per_second is None:
            return self.latency_ns
        return self.latency_ns + round(size * 1e9 / self.bytes_per_second)


class PacedLink:
    """Moves bytes for one stream. Sleeping too long does not add up: each copy is measured against
    the end that the one before should have had.
    """

    def __init__(self, link: Link, abort: threading.Event) -> None:
        self._link, self._abort = link, abort
        self._free_ns = 0
        self._moved: deque[tuple[int, int]] = deque(maxlen=REMEMBERED)

    def busy(self, since_ns: int) -> list[tuple[int, int]]:
        """(begin, end) of the copies that end after `since_ns`, in order, the running one too."""
        return [(begin, end) for begin, end in list(self._moved) if end > since_ns]

    def move(self, dst: torch.Tensor, src: torch.Tensor, ready_ns: int) -> int:
        """Copy uint8 `src` to `dst`, which could begin at `ready_ns`; returns the begin, in ns."""
        begin = max(ready_ns, self._free_ns)
        size = src.numel()
        self._moved.append((begin, begin + self._link.duration_ns(size)))
        # Whoever reads too early must see that, not last week's weights: half of it is NaN.
        dst.fill_(0xFF)
        shares = CHUNKS if size > LEAST_CHUNK else CHUNKS[-1:]
        start = 0
        for stop in (round(size * share) for share in shares):
            self._sleep_until(begin + self._link.duration_ns(stop))
            dst[start:stop].copy_(src[start:stop])
            start = stop
        self._free_ns = begin + self._link.duration_ns(size)
        return begin

    def _sleep_until(self, deadline_ns: int) -> None:
        left = deadline_ns - time.monotonic_ns()
        if left > 0:
            self._abort.wait(left / 1e9)
