"""Devices that take all work of an engine and do none of it, to measure what the host spends."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from runtime.device import COMPUTE, COPY, ROUTER
from runtime.standin import StandIn


class IdleDevice(StandIn):
    """The stand-in with its streams, events and errors, whose experts are neither copied nor
    computed. `queued` counts what a GPU would have been given.
    """

    def __init__(self) -> None:
        super().__init__({}, inline=frozenset({COMPUTE, COPY, ROUTER}))
        self.queued: Counter[str] = Counter()

    def run(self, stream: Any, work: Callable[[], None], *_: Any, **__: Any) -> Any:
        self.queued["work"] += 1
        return super().run(stream, _nothing)

    def copy(self, dst: Any, src: Any, stream: Any, *_: Any, **__: Any) -> Any:
        if stream is self.stream(COPY):
            self.queued["copy of an expert"] += 1
            return super().run(stream, _nothing)
        self.queued["small copy"] += 1
        return super().copy(dst, src, stream)

    def record(self, event: Any, stream: Any) -> None:
        self.queued["event"] += 1
        super().record(event, stream)

    def wait(self, stream: Any, event: Any) -> None:
        self.queued["wait"] += 1
        super().wait(stream, event)


class Instant:
    """An event that happened when it was made."""

    __slots__ = ("at_ns",)

    def __init__(self) -> None:
        self.at_ns = time.monotonic_ns()


class BareDevice(StandIn):
    """Without the stand-in's machinery too: what is queued is over at once, and only the bytes of
    small messages move. What is left is the project's own driver, session and policy.
    """

    def event(self) -> Any:
        return Instant()

    def record(self, event: Instant, stream: Any) -> None:  # type: ignore[override]
        event.at_ns = time.monotonic_ns()

    def wait(self, stream: Any, event: Any) -> None:
        """Everything has happened."""

    def run(self, stream: Any, work: Callable[[], None], *_: Any, **__: Any) -> Any:
        return Instant()

    def copy(self, dst: Any, src: Any, stream: Any, *_: Any, **__: Any) -> Any:
        if stream is not self._experts:
            dst.view(-1).view(torch.uint8).copy_(src.view(-1).view(torch.uint8))
        return Instant()

    def __init__(self) -> None:
        super().__init__({}, inline=frozenset({COMPUTE, COPY, ROUTER}))
        self._experts = self.stream(COPY)

    def done(self, event: Any) -> bool:
        return True

    def synchronize(self, event: Any) -> None:
        """Everything has happened."""

    def join(self, stream: Any) -> None:
        """Everything has happened."""

    def begin_ns(self, event: Any) -> int:
        return int(event.at_ns)

    def end_ns(self, event: Any) -> int:
        return int(event.at_ns)


def _nothing() -> None:
    """The work that is not done."""
