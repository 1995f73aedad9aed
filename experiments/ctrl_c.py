"""Ctrl-C and a request to end (SIGTERM, as `timeout` and Slurm send it) while a command runs: they
reach the command even where a library loses them."""

import _thread
import os
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

AGAIN_SECONDS = 0.01


class Terminated(BaseException):
    """SIGTERM: the command cleans up and ends. No KeyboardInterrupt, which a chat answers."""


class CtrlC:
    """Raises KeyboardInterrupt as Python does, and remembers that it did; Terminated for SIGTERM,
    of which a second one ends the process as it always does. `number`: of the first signal.

    Compiled code that is torn out of its work may answer with an error of its own in its place,
    or fail while it cleans up: after `raised`, such an error means Ctrl-C. In a destructor or the
    callback of a weak reference Python prints the KeyboardInterrupt and drops it: then it is raised
    once more a moment later. Outside the main thread, where no signals arrive, and in a background
    job whose shell keeps Ctrl-C from it, nothing is changed.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._active = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
        )
        self._handler: Any = None
        self._ends = self._active and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        self._hook = sys.unraisablehook

    def _raise(self, number: int, frame: FrameType | None) -> None:
        self.number = self.number or number
        raise KeyboardInterrupt

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self.number = number
        raise Terminated

    @property
    def raised(self) -> bool:
        """Whether one of them came."""
        return self.number is not None

    def _dropped(self, dropped: "sys.UnraisableHookArgs") -> None:
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            threading.Timer(AGAIN_SECONDS, _thread.interrupt_main).start()
        elif issubclass(dropped.exc_type, Terminated):
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            self._hook(dropped)

    def __enter__(self) -> "CtrlC":
        self._hook = sys.unraisablehook
        if self._active:
            sys.unraisablehook = self._dropped
            self._handler = signal.signal(signal.SIGINT, self._raise)
        if self._ends:
            signal.signal(signal.SIGTERM, self._terminate)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._active:
            signal.signal(signal.SIGINT, self._handler)
            sys.unraisablehook = self._hook
        if self._ends:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
