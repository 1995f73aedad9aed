"""Streams of the stand-in, with a worker thread or without, and the events they set."""

import queue
import threading
import time
from collections.abc import Callable

import torch

from runtime.device import DeviceError


class StandInEvent:
    """Happens once; carries the error of the work before it, if that failed."""

    def __init__(self) -> None:
        self.recorded = self.happened = False
        self.stream = ""  # of the work that it ends
        self.error: BaseException | None = None
        self.begin_ns = 0
        self.end_ns = 0
        # Held until the event happens. A threading.Event costs ten times as much to make.
        self._gate = threading.Lock()
        self._gate.acquire()

    def wait(self) -> None:
        if not self.happened:
            with self._gate:  # the next one who waits takes it from here
                pass

    def set(self, error: BaseException | None, begin_ns: int = 0) -> None:
        """Called by a stream when all work before the event is finished."""
        self.error = error
        self.end_ns = time.monotonic_ns()
        self.begin_ns = begin_ns or self.end_ns
        if not self.happened:
            self.happened = True
            self._gate.release()


class InlineStream:
    """A stream whose work the caller does itself, at once: no thread to wake, in the same order.

    For short work after which the caller would wait anyway; a wait blocks the caller.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready_ns = 0
        self._error: BaseException | None = None

    def put(self, work: Callable[[], int | None], event: StandInEvent) -> None:
        """Do `work`, set `event`. Work may return when it began, if not at its call."""
        begin = time.monotonic_ns()
        if self._error is None:
            try:
                begin = work() or begin
            except Exception as error:
                self._error = error
        event.set(self._error, begin)

    def record(self, event: StandInEvent) -> None:
        event.set(self._error)

    def wait(self, event: StandInEvent) -> None:
        """Returns after the event; later work fails with it."""
        event.wait()
        self.ready_ns = time.monotonic_ns()
        self._error = self._error or event.error

    def stop(self) -> None:
        """Skip what may still come."""
        self._error = self._error or DeviceError("the device was closed")

    def join(self) -> bool:
        """There is nothing to wait for."""
        return True


class StandInStream:
    """Work in the order it was put here. After an error the rest is skipped, so that nobody who
    waits for one of its events hangs.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready_ns = 0  # end of the last wait: work could not begin before that
        self._error: BaseException | None = None
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=f"standin-{name}", daemon=True)
        self._thread.start()

    def put(self, work: Callable[[], int | None], event: StandInEvent) -> None:
        """Queue `work`, then `event`. Work may return when it began, if not at its call."""

        def execute() -> None:
            begin = time.monotonic_ns()
            if self._error is None:
                try:
                    begin = work() or begin
                except BaseException as error:
                    self._error = error
            event.set(self._error, begin)

        self._queue.put(execute)

    def record(self, event: StandInEvent) -> None:
        self._queue.put(lambda: event.set(self._error))

    def wait(self, event: StandInEvent) -> None:
        """Later work waits for `event`, and fails with it."""

        def block() -> None:
            event.wait()
            self.ready_ns = time.monotonic_ns()
            self._error = self._error or event.error

        self._queue.put(block)

    def stop(self) -> None:
        """Skip what is queued; the work that runs now ends by itself."""
        self._error = self._error or DeviceError("the device was closed")
        self._queue.put(None)

    def join(self) -> bool:
        """Wait a few seconds for the thread to end; True if it did."""
        self._thread.join(timeout=5.0)
        return not self._thread.is_alive()

    def _serve(self) -> None:
        # Slots were made outside inference mode, activations inside; this thread touches both.
        with torch.inference_mode():
            while (execute := self._queue.get()) is not None:
                execute()
