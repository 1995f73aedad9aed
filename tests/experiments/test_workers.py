"""Cells in several processes: all results, in any order; killed workers; nothing left behind."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.workers import run_cells
from policies.errors import UserError


def squared(number: int) -> int:
    return number * number


def process_of(_: int) -> int:
    time.sleep(0.05)
    return os.getpid()


def slow_in(parent: int) -> int:
    """Two seconds in the process `parent`, none elsewhere."""
    if os.getpid() == parent:
        time.sleep(2)
    return os.getpid()


def killed_elsewhere(parent: int) -> int:
    """Dies as if the kernel had taken its memory, unless it runs in the process `parent`."""
    if os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return parent


def refused(number: int) -> int:
    if number == 3:
        raise UserError("cell 3 is impossible")
    return number


def empty_lookup(number: int) -> int:
    return [7][number]


def results(play, cells, workers, order=None) -> dict[int, int]:
    return dict(run_cells(play, cells, order or range(len(cells)), workers))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_every_cell_is_played_once(workers: int) -> None:
    cells = list(range(40))
    found = list(run_cells(squared, cells, cells, workers))
    assert len(found) == 40
    assert dict(found) == {number: number * number for number in cells}
    assert not multiprocessing.active_children()


def test_one_process_keeps_the_order_given() -> None:
    found = list(run_cells(squared, [1, 2, 3], [2, 0, 1], workers=1))
    assert found == [(2, 9), (0, 1), (1, 4)]


def test_no_cell_at_all() -> None:
    assert results(squared, [], workers=2) == {}


def test_a_single_cell_starts_no_process() -> None:
    assert results(process_of, [0], workers=2) == {0: os.getpid()}


def test_this_process_and_its_workers_share_the_cells() -> None:
    found = results(process_of, list(range(100)), workers=2)
    assert len(set(found.values())) == 2 and os.getpid() in found.values()


def test_workers_go_on_while_this_process_plays_a_long_cell() -> None:
    found = results(slow_in, [os.getpid()] * 60, workers=2)
    assert len(found) == 60
    assert list(found.values()).count(os.getpid()) < 20


def test_a_lookup_that_fails_in_a_cell_is_not_hidden() -> None:
    with pytest.raises(IndexError):
        results(empty_lookup, [0, 1, 2], workers=2)


def test_a_killed_worker_is_one_clear_refusal() -> None:
    with pytest.raises(UserError, match="a worker process was killed, perhaps for lack of memory"):
        results(killed_elsewhere, [os.getpid()] * 400, workers=2)
    assert not multiprocessing.active_children()


def kills_the_others(_: int) -> int:
    """In this process, as the first cell: no worker is left when the next are handed out."""
    for child in multiprocessing.active_children():
        child.kill()
        child.join()
    return 0


def test_a_worker_killed_before_it_had_a_cell_is_the_same_refusal() -> None:
    with pytest.raises(UserError, match="a worker process was killed, perhaps for lack of memory"):
        results(kills_the_others, list(range(40)), workers=3)
    assert not multiprocessing.active_children()


def test_a_refusal_in_a_cell_comes_through() -> None:
    with pytest.raises(UserError, match="cell 3 is impossible"):
        results(refused, list(range(40)), workers=2, order=[0, 3, *range(4, 40)])
    assert not multiprocessing.active_children()


def test_stopping_early_leaves_no_process() -> None:
    cells = run_cells(process_of, list(range(100)), range(100), 2)
    for _ in range(60):
        next(cells)
    cells.close()
    assert not multiprocessing.active_children()


OBSERVED = """
import os, signal, sys
if "--multiprocessing-fork" in sys.argv:
    blocked = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with open(os.environ["SEEN"], "a") as seen:
        seen.write(f"{blocked}\\n")
"""


def test_workers_are_deaf_to_ctrl_c_before_they_run_any_code_of_ours(tmp_path: Path) -> None:
    """A signal while Python starts would be a traceback of a process that nobody knows of."""
    (tmp_path / "sitecustomize.py").write_text(OBSERVED)
    program = (
        "import signal\n"
        "from experiments.workers import run_cells\n"
        "if __name__ == '__main__':\n"
        "    assert dict(run_cells(abs, range(40), range(40), 3)) == {n: n for n in range(40)}\n"
        "    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])\n"
    )
    (tmp_path / "program.py").write_text(program)
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    subprocess.run(
        [sys.executable, str(tmp_path / "program.py")], check=True,
        env={**os.environ, "PYTHONPATH": path, "SEEN": str(tmp_path / "seen")},
    )  # fmt: skip
    seen = (tmp_path / "seen").read_text().split()
    assert seen and set(seen) == {"True"}
