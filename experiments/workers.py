"""Runs independent cells in several processes: this one and workers beside it."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from signal import SIG_IGN, SIGINT, signal
from typing import TypeVar

from policies.errors import UserError

Cell = TypeVar("Cell")
Result = TypeVar("Result")
AHEAD = 2  # cells handed to each worker before they are needed, so that none waits for this process


def run_cells(
    play: Callable[[Cell], Result], cells: Sequence[Cell], order: Sequence[int], workers: int
) -> Iterator[tuple[int, Result]]:
    """(index of the cell, `play` of it) as they finish, begun in `order`. `play` is a function of a
    module, so that processes find it. Stopping early leaves no process behind.

    The first cell is played here alone, so that kernels are compiled once and not by every process;
    then this process goes on playing beside workers - 1 others, which need time to start.
    """
    waiting = deque(order)
    for _ in range(len(waiting) if workers == 1 else min(1, len(waiting))):
        index = waiting.popleft()
        yield index, play(cells[index])
    if not waiting:
        return
    # Fresh processes: a forked one would inherit the progress bar's thread.
    pool = ProcessPoolExecutor(
        workers - 1, get_context("spawn"), initializer=signal, initargs=(SIGINT, SIG_IGN)
    )
    started: dict[Future[Result], int] = {}
    try:
        while waiting or started:
            while waiting and len(started) < AHEAD * (workers - 1):
                index = waiting.popleft()
                started[pool.submit(play, cells[index])] = index
            if waiting:
                index = waiting.popleft()
                yield index, play(cells[index])
            done, _ = wait(started, timeout=0 if waiting else None, return_when=FIRST_COMPLETED)
            for future in done:
                yield started.pop(future), future.result()
    except BrokenProcessPool as error:
        raise UserError(
            "a worker process was killed, perhaps for lack of memory; the rows finished so far are "
            "kept. Run it again with a smaller workers=, or with workers=1"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
