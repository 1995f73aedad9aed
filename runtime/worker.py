"""One host thread that does jobs in order, such as the experts computed on the CPU."""

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from runtime.device import DeviceError
from runtime.failures import first_line


class Job:
    """What a worker was asked to do; `result` waits for it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.begin_ns = 0
        self.end_ns = 0
        self._work = work
        self._value: Any = None
        self._error: BaseException | None = None
        # Held until the job is done. A threading.Event costs ten times as much to make.
        self._gate = threading.Lock()
        self._gate.acquire()

    def execute(self) -> None:
        """Called by the worker."""
        self.begin_ns = time.monotonic_ns()
        try:
            self._value = self._work()
        except BaseException as error:
            self._error = error
        self.end_ns = time.monotonic_ns()
        self._gate.release()

    def refuse(self, error: BaseException) -> None:
        """The worker was stopped before it came to this job."""
        self._error = error
        self._gate.release()

    def result(self) -> Any:
        """Wait; DeviceError if the work failed."""
        with self._gate:
            pass
        if self._error is not None:
            if isinstance(self._error, DeviceError):
                raise self._error
            raise DeviceError(f"CPU worker: {first_line(self._error)}")
        return self._value


class Worker:
    """Every thread that calls torch brings its own team of threads, so there is exactly one of
    these. It starts with the first job.
    """

    def __init__(self, name: str) -> None:
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._stopped = False
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)

    def submit(self, work: Callable[[], Any]) -> Job:
        """Queue `work`."""
        if self._stopped:
            raise DeviceError("CPU worker: stopped")
        if not self._thread.is_alive():
            self._thread.start()
        job = Job(work)
        self._queue.put(job)
        return job

    def stop(self) -> None:
        """Drop what is queued and end the thread. May be called twice."""
        self._stopped = True
        self._queue.put(None)
        if self._thread.ident is None:
            return
        self._thread.join(timeout=5.0)
        if self._thread.is_alive():
            raise DeviceError("CPU worker: still busy after 5 s")

    def _serve(self) -> None:
        with torch.inference_mode():
            while (job := self._queue.get()) is not None:
                if self._stopped:
                    job.refuse(DeviceError("CPU worker: stopped"))
                else:
                    job.execute()
