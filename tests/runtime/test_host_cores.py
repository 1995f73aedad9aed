"""Cores that torch may use, and those it leaves alone."""

import os

import pytest
import torch

from runtime import host_cores


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (3, 1), (4, 1), (16, 13)])
def test_some_cores_are_left_to_others(
    cores: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, told = torch.get_num_threads(), []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    monkeypatch.setattr(torch, "set_num_threads", told.append)
    assert host_cores.reserve_cores() == threads
    assert told == [threads]
    assert torch.get_num_threads() == before
