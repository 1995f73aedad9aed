"""Ctrl-C that a library hides or loses still ends a command with one line and code 130."""

import signal

import pytest

from experiments.commands import Command
from experiments.launch import launch


@pytest.mark.parametrize("way", ["failing_clean_up", "other_error", "refused", "dropped"])
def test_hidden_by_a_library(
    way: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIDDEN_BY", way)
    command = Command("policies", "tests.experiments.hidden_interrupt", "loses Ctrl-C")
    assert launch(command, []) == 130
    assert capfd.readouterr().err == "interrupted: what was finished is kept\n"


@pytest.mark.parametrize("way", ["terminated", "terminated_and_hidden"])
def test_a_request_to_end_cleans_up_and_says_so(
    way: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIDDEN_BY", way)
    command = Command("policies", "tests.experiments.hidden_interrupt", "is ended")
    assert launch(command, []) == 143
    assert capfd.readouterr().err == "interrupted: what was finished is kept\n"
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_without_ctrl_c_a_fault_of_ours_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIDDEN_BY", "nothing")
    command = Command("policies", "tests.experiments.hidden_interrupt", "fails")
    with pytest.raises(ZeroDivisionError):
        launch(command, [])


def test_a_job_in_the_background_ignores_ctrl_c_as_its_shell_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HIDDEN_BY", "other_error")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    command = Command("policies", "tests.experiments.hidden_interrupt", "is not interrupted")
    assert launch(command, []) == 0
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
