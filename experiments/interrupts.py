"""Ctrl-C while a model generates: the pass at hand is finished first, so that its log is whole."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

NOTICE = b"\nstopping after this pass; Ctrl-C again stops at once\n"


class Interrupts:
    """The first Ctrl-C is noted in `pressed`, to be read between passes; the second raises
    KeyboardInterrupt at once. One that nobody took is raised at the end.
    """

    def __init__(self) -> None:
        self.pressed = False
        self._raising = False
        self._before: Any = None

    def check(self) -> None:
        """KeyboardInterrupt if Ctrl-C was pressed."""
        if self.pressed:
            raise KeyboardInterrupt

    def take(self) -> bool:
        """Was it pressed? It counts as answered then."""
        pressed, self.pressed = self.pressed, False
        return pressed

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Inside, Ctrl-C raises at once, as while waiting for a line of input."""
        self._raising = True
        try:
            yield
        finally:
            self._raising = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._raising:
            raise KeyboardInterrupt
        if self.pressed and callable(self._before):
            self._before(number, frame)
        self.pressed = True
        os.write(2, NOTICE)  # print could be in the middle of its own buffer

    def __enter__(self) -> "Interrupts":
        self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGINT, self._before)
        if error is None:
            self.check()
