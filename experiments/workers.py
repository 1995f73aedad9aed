"""Runs independent cells in several processes: this one and workers beside it."""

import atexit
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from queue import SimpleQueue
from signal import SIG_BLOCK, SIG_SETMASK, SIGINT, pthread_sigmask
from threading import Thread
from typing import Generic, TypeVar

from experiments.values import whole_number
from policies.errors import UserError

Cell = TypeVar("Cell")
Result = TypeVar("Result")
AHEAD = 2  # cells that each worker holds: one is being played, one waits to be next


def workers_from(workers: int | None, jobs: int) -> int:
    """Processes to use: as asked, at most one per core and per job."""
    wanted = (os.cpu_count() or 1) if workers is None else whole_number("workers", workers)
    if wanted < 1:
        raise UserError(f"workers={workers}: must be at least 1")
    return max(1, min(wanted, jobs))


def run_cells(
    play: Callable[[Cell], Result], cells: Sequence[Cell], order: Sequence[int], workers: int
) -> Iterator[tuple[int, Result]]:
    """(index of the cell, `play` of it) as they finish, begun in `order`. `play` is a function of a
    module, so that processes find it. Stopping early leaves no process behind.

    The first cell is played here alone, so that kernels are compiled once and not by every process,
    while workers - 1 others start; then this process goes on playing beside them.
    """
    if workers == 1 or len(order) < 2:
        yield from ((index, play(cells[index])) for index in order)
        return
    waiting = deque(order)
    left, beside = len(waiting), _Workers(play, cells, waiting, workers - 1)
    try:
        first = waiting.popleft()
        yield first, play(cells[first])
        left -= 1
        beside.begin()
        while left:
            mine = next_of(waiting)
            if mine is not None:
                yield mine, play(cells[mine])
                left -= 1
            for index, result in beside.finished():
                yield index, result
                left -= 1
    except BrokenProcessPool as error:
        raise UserError(
            "a worker process was killed, perhaps for lack of memory; what has finished so far is "
            "kept. Run it again with a smaller workers=, or with workers=1"
        ) from error
    finally:
        beside.stop()


def next_of(waiting: deque[int]) -> int | None:
    """The next index, None after the last; safe while another thread takes from it too."""
    with suppress(IndexError):
        return waiting.popleft()
    return None


@contextmanager
def without_ctrl_c() -> Iterator[None]:
    """Processes begun in it, and by threads begun in it, never see Ctrl-C, from their first moment
    on: it is for the process that reads the results. Pressed meanwhile, it comes afterwards."""
    before = pthread_sigmask(SIG_BLOCK, {SIGINT})
    try:
        yield
    finally:
        pthread_sigmask(SIG_SETMASK, before)


def _begin_worker(play: Callable[..., object]) -> None:
    """What `play` needs is loaded by now. When the process that reads the results is killed, so is
    this one: by itself a worker would wait for its next cell for ever."""
    # At the end at once: the process that reads the results waits for it, with all of them read.
    atexit.register(os._exit, 0)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


class _Workers(Generic[Cell, Result]):
    """Processes that take cells from `waiting`, each the next one as soon as it has finished one,
    however long the process that reads the results is busy."""

    def __init__(
        self,
        play: Callable[[Cell], Result],
        cells: Sequence[Cell],
        waiting: deque[int],
        processes: int,
    ) -> None:
        self._play = play
        self._cells = cells
        self._waiting = waiting
        self._done: SimpleQueue[tuple[int, Future[Result]]] = SimpleQueue()
        # Fresh processes: a forked one would inherit the progress bar's thread.
        self._pool = ProcessPoolExecutor(
            processes, get_context("spawn"), initializer=_begin_worker, initargs=(play,)
        )
        self._processes = processes
        with without_ctrl_c():
            for _ in range(processes):  # a process starts when there is something to do
                self._pool.submit(os.getpid)

    def begin(self) -> None:
        """Hand out the first cells."""
        with without_ctrl_c():
            for _ in range(AHEAD * self._processes):
                self._hand_out()

    def finished(self) -> Iterator[tuple[int, Result]]:
        """What has finished by now; where no cell waits, at least one result."""
        must_wait = not self._waiting
        while must_wait or not self._done.empty():
            index, future = self._done.get()
            yield index, future.result()
            must_wait = False

    def stop(self) -> None:
        """Ends the processes after the cells that they are playing."""
        self._waiting.clear()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _hand_out(self) -> None:
        index = next_of(self._waiting)
        if index is None:
            return
        try:
            future = self._pool.submit(self._play, self._cells[index])
        except BrokenProcessPool as error:  # a worker was killed before it had a cell
            future = Future()
            future.set_exception(error)
        except RuntimeError:  # in the pool's thread, where the pool may just have ended
            return
        future.add_done_callback(lambda done: self._took(index, done))

    def _took(self, index: int, done: Future[Result]) -> None:
        self._done.put((index, done))
        if not done.cancelled() and done.exception() is None:
            self._hand_out()
