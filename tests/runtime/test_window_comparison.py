"""The comparison finds planted differences; one that cannot find any would prove nothing."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtime.margins import MarginLog, WindowMargins
from runtime.prompts import Prompt
from runtime.recorder import RecordingSettings, record_dense, record_windowed
from runtime.window_comparison import Difference, Recording, compare_request
from traces.manifest import SamplingInfo
from traces.replay import Replay
from traces.window import Window

GAMMA = 4
SETTINGS = RecordingSettings("test", GAMMA, SamplingInfo("keyed", 0.8, 1), 24)

Change = Callable[[Window], Window]


class ChangedReplay:
    """A replay whose window at one start is another."""

    def __init__(self, replay: Replay, start: int, change: Change) -> None:
        self._replay, self._start, self._change = replay, start, change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._replay, name)

    def window(self, request: int, start: int, gamma: int) -> Window:
        window = self._replay.window(request, start, gamma)
        return self._change(window) if start == self._start else window


@pytest.fixture(scope="module")
def recordings(
    tiny: Any, tiny_prompts: list[Prompt], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Recording, Recording]:
    folder, found = tmp_path_factory.mktemp("recordings"), []
    for name, record in (("dense", record_dense), ("real", record_windowed)):
        log = MarginLog(keep_windows=True)
        record(folder / name, tiny.target, tiny.draft, tiny_prompts[3:], SETTINGS, margins=log)
        found.append(Recording.open(folder / name, log))
    return found[0], found[1]


def compare(recordings: tuple[Recording, Recording], change: Change) -> list[Difference]:
    dense, real = recordings
    start = list(real.windows(0, GAMMA))[1]
    changed = ChangedReplay(real.replay, start, change)
    return list(compare_request(dense, replace(real, replay=changed), 0, GAMMA))


def test_equal_recordings(recordings: tuple[Recording, Recording]) -> None:
    assert compare(recordings, lambda window: window) == []


def test_one_expert_of_one_row(recordings: tuple[Recording, Recording]) -> None:
    def change(window: Window) -> Window:
        experts = window.experts.copy()
        free = set(range(8)) - set(experts[3, 2].tolist())
        experts[3, 2, 1] = min(free)
        return replace(window, experts=experts)

    (found,) = compare(recordings, change)
    assert (found.kind, found.row, found.layer) == ("routing", 3, 2)
    margins = [part.margins.windows[0, found.start].router[3, 2] for part in recordings]
    assert found.margin == pytest.approx(min(margins))
    assert not found.explained
    assert "layer 2: routing differs, margin" in str(found)


def test_order_of_experts_does_not_count(recordings: tuple[Recording, Recording]) -> None:
    assert compare(recordings, lambda w: replace(w, experts=w.experts[..., ::-1])) == []


def test_a_draft_token_ends_the_comparison_of_its_window(
    recordings: tuple[Recording, Recording],
) -> None:
    def change(window: Window) -> Window:
        tokens = window.tokens.copy()
        tokens[4] = (tokens[4] + 1) % 64
        return replace(window, tokens=tokens, experts=np.roll(window.experts, 1, axis=0))

    found = compare(recordings, change)
    assert [item.row for item in found if item.kind == "draft"] == [4]
    assert all(item.row < 4 for item in found if item.kind == "routing")


def test_a_choice_and_what_follows_it(recordings: tuple[Recording, Recording]) -> None:
    def change(window: Window) -> Window:
        choices = window.choices.copy()
        choices[0] = (choices[0] + 1) % 64
        return replace(window, choices=choices, committed=1)

    found = compare(recordings, change)
    assert found[0].kind == "choice"
    assert not found[0].consequence
    assert all(item.consequence for item in found[1:])


def test_a_near_tie_explains(recordings: tuple[Recording, Recording]) -> None:
    dense, real = recordings
    start = list(real.windows(0, GAMMA))[1]
    old = real.margins.windows[0, start]
    close = MarginLog(keep_windows=True)
    close.windows = real.margins.windows | {
        (0, start): WindowMargins(old.score, old.draft, np.full_like(old.router, 3e-7))
    }

    def change(window: Window) -> Window:
        return replace(window, experts=(window.experts + 1) % 8)

    changed = ChangedReplay(real.replay, start, change)
    found = list(compare_request(dense, Recording(changed, close), 0, GAMMA))
    assert found[0].margin == pytest.approx(3e-7)
    assert all(item.explained for item in found)


def test_other_noise_is_unexplained(tiny: Any, tiny_prompts: list[Prompt], tmp_path: Path) -> None:
    logs = MarginLog(keep_windows=True), MarginLog(keep_windows=True)
    other = replace(SETTINGS, sampling=SamplingInfo("keyed", 0.8, 2))
    models = tiny.target, tiny.draft, tiny_prompts
    record_dense(tmp_path / "a", *models, SETTINGS, margins=logs[0])
    record_windowed(tmp_path / "b", *models, other, margins=logs[1])
    dense = Recording.open(tmp_path / "a", logs[0])
    real = Recording.open(tmp_path / "b", logs[1])
    assert any(
        not item.explained
        for request in range(len(tiny_prompts))
        for item in compare_request(dense, real, request, GAMMA)
    )
