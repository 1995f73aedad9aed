"""The first use after an installation says that it compiles, and does so in two processes."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from experiments import first_use
from experiments.compile_notice import compile_notice
from experiments.first_use import compiling_beside

SLEEPER = ("-c", "import time; time.sleep(600)")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Nothing is compiled, and what is started beside sleeps; the processes started."""
    processes: list[subprocess.Popen[bytes]] = []
    start = first_use.start_beside

    def noted() -> subprocess.Popen[bytes]:
        processes.append(start())
        return processes[-1]

    monkeypatch.setattr(first_use, "are_compiled", lambda: False)
    monkeypatch.setattr(first_use, "BESIDE", SLEEPER)
    monkeypatch.setattr(first_use, "start_beside", noted)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    return processes


def test_it_says_how_long_on_stderr_and_leaves_no_process(started, capsys) -> None:
    with compiling_beside():
        assert started[0].poll() is None
    assert started[0].poll() is not None
    said = capsys.readouterr()
    assert said.out == "" and "a first run" in said.err


def test_what_compiles_first_is_told_of_once(capsys) -> None:
    def one_more(number):
        return number + 1

    with compile_notice():
        assert numba.njit(one_more)(1) == 2
    assert capsys.readouterr().err == "", "no kernel of the project"
    one_more.__module__ = "policies.made_up"
    one_more = numba.njit(one_more)
    with compile_notice():
        assert one_more(1) == 2 and one_more(1.0) == 2.0
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("compiling kernels, once after an installation") == 1
    with compile_notice():
        assert one_more(2) == 3
    one_more(1j)
    assert capsys.readouterr().err == ""


def test_an_error_leaves_no_process_either(started) -> None:
    with pytest.raises(KeyboardInterrupt), compiling_beside():
        raise KeyboardInterrupt
    assert started[0].poll() is not None


def test_one_core_compiles_alone(started, capsys, monkeypatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0})
    with compiling_beside():
        assert not started
    assert "a first run" in capsys.readouterr().err


def test_compiled_kernels_are_not_spoken_of(started, capsys, monkeypatch) -> None:
    monkeypatch.setattr(first_use, "are_compiled", lambda: True)
    with compiling_beside():
        assert not started
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_an_empty_cache_is_filled_by_both_once(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "experiments.benchmarks.first_run", "spac"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    assert "compiling kernels" in first.stderr and second.stderr == ""
    decisions = {path.name for path in tmp_path.rglob("kernels.enter_layer-*.nbc")}
    assert len(decisions) == 1, "the decision ahead has other types than the one that is called"
