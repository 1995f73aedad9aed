"""Ctrl-C while a command runs: it reaches the command even where a library loses it."""

import _thread
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

AGAIN_SECONDS = 0.01


class CtrlC:
    """Raises KeyboardInterrupt as Python does, and remembers that it did.

    Compiled code that is torn out of its work may answer with an error of its own in its place,
    or fail while it cleans up: after `raised`, such an error means Ctrl-C. In a destructor or the
    callback of a weak reference Python prints the KeyboardInterrupt and drops it: then it is raised
    once more a moment later. Outside the main thread, where no signals arrive, and in a background
    job whose shell keeps Ctrl-C from it, nothing is changed.
    """

    def __init__(self) -> None:
        self.raised = False
        self._active = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
        )
        self._handler: Any = None
        self._hook = sys.unraisablehook

    def _raise(self, number: int, frame: FrameType | None) -> None:
        self.raised = True
        raise KeyboardInterrupt

    def _dropped(self, dropped: "sys.UnraisableHookArgs") -> None:
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            threading.Timer(AGAIN_SECONDS, _thread.interrupt_main).start()
        else:
            self._hook(dropped)

    def __enter__(self) -> "CtrlC":
        self._hook = sys.unraisablehook
        if self._active:
            sys.unraisablehook = self._dropped
            self._handler = signal.signal(signal.SIGINT, self._raise)
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
