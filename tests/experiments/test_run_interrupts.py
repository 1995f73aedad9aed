"""Ctrl-C at random moments of `spac run`, once or twice: code 130, no traceback, whole passes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.interrupts import Interrupts
from runtime.tiny import TinyShape, make_tiny_pair

DRIVER = Path(__file__).parent / "interrupt_driver.py"


def drive(folder: Path, rounds: int, seed: int) -> dict[str, Any]:
    make_tiny_pair(folder / "pair", seed=3, shape=TinyShape(layers=3))
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(folder / "pair"), str(rounds), str(seed)],
        cwd=folder, capture_output=True, text=True, timeout=900,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    (line,) = [one for one in done.stdout.splitlines() if one.startswith("RESULT ")]
    result: dict[str, Any] = json.loads(line.removeprefix("RESULT "))
    return result


def check(result: dict[str, Any], rounds: int) -> None:
    assert result["problems"] == []
    assert len(result["codes"]) == rounds
    assert set(result["codes"]) <= {0, 130}
    assert result["codes"].count(130) > rounds // 2, "hardly any round was interrupted"
    assert any(passes > 0 for passes in result["passes"]), "no round was interrupted in mid-run"


def test_ctrl_c_at_random_moments(tmp_path: Path) -> None:
    check(drive(tmp_path, rounds=12, seed=1), 12)


@pytest.mark.slow
def test_ctrl_c_at_many_random_moments(tmp_path: Path) -> None:
    check(drive(tmp_path, rounds=150, seed=2), 150)


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def test_the_first_is_noted_and_the_second_raises(capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        press()
        assert interrupts.pressed
        assert "Ctrl-C again stops at once" in capfd.readouterr().err
        press()
    assert signal.getsignal(signal.SIGINT) is before


def test_one_that_nobody_took_is_raised_at_the_end() -> None:
    with pytest.raises(KeyboardInterrupt), Interrupts():
        press()


def test_one_that_was_taken_is_forgotten() -> None:
    with Interrupts() as interrupts:
        press()
        assert interrupts.take()
        assert not interrupts.take()
        interrupts.check()


def test_while_waiting_for_input_it_raises_at_once() -> None:
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt), interrupts.raising():
            press()
        assert not interrupts.pressed
