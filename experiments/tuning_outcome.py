"""What a search found: default against tuned, on the requests it saw and on those held out."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
import pandas as pd

from experiments.fitted_table import FittedTable
from experiments.tables import write_table
from experiments.text_table import TextRow, TextTable
from experiments.tuning_runs import Scene, Speeds, gain
from experiments.tuning_study import finished

TRIALS = "trials"
SURVIVES = 0.5  # share of the gain on the fit requests that must be found on the others


@dataclass(frozen=True)
class Outcome:
    """Speeds of the default (`base`) and of the tuned `values` on both sides."""

    scene: Scene
    values: Mapping[str, Any]
    trials: int
    fit_base: Speeds
    fit_tuned: Speeds
    held_base: Speeds
    held_tuned: Speeds

    @property
    def gain_on_fit(self) -> float:
        """0.1 = 10 % faster than the default, mean over traces."""
        return gain(self.fit_tuned, self.fit_base) - 1

    @property
    def gain_on_held_out(self) -> float:
        """The same on requests that the search never saw."""
        return gain(self.held_tuned, self.held_base) - 1


def verdict(outcome: Outcome) -> str:
    """One sentence; a warning where the gain does not survive on the held-out requests."""
    fit, held = outcome.gain_on_fit, outcome.gain_on_held_out
    if fit <= 0:
        return f"Nothing of {outcome.trials} trials is faster than the default."
    found = f"{fit:+.1%} on the fit requests, {held:+.1%} on those held out"
    if held <= 0:
        return f"Warning: the gain does not survive: {found}. Keep the default."
    if held < SURVIVES * fit:
        return f"Warning: most of the gain does not survive: {found}. More requests would tell."
    return f"Tuned: {found}."


def outcome_table(outcome: Outcome) -> FittedTable:
    """Tokens per second by trace and side, and the tuned values in the note."""
    scene = outcome.scene
    default = {**scene.choice.parameters, "gamma": scene.setting.gamma}
    changed = [
        f"{key}={_short(value)} (was {_short(default[key])})"
        for key, value in outcome.values.items()
        if value != default[key]
    ]
    rows = []
    sides = (
        ("fit", scene.fit, outcome.fit_base, outcome.fit_tuned, outcome.gain_on_fit),
        ("held out", scene.held_out, outcome.held_base, outcome.held_tuned,
         outcome.gain_on_held_out),
    )  # fmt: skip
    for title, side, base, tuned, mean in sides:
        for name, old, new in zip(side.names, base, tuned, strict=True):
            cells = [
                title, name, str(len(new)), f"{old[-1]:.1f}", f"{new[-1]:.1f}",
                f"{new[-1] / old[-1] - 1:+.1%}",
            ]  # fmt: skip
            rows.append(TextRow(cells))
        cells = [title, "mean", str(side.counted), "", "", f"{mean:+.1%}"]
        rows.append(TextRow(cells, style="bold"))
    headings = ["requests", "trace", "counted", "default", "tuned", "gain"]
    return FittedTable(
        TextTable("tokens per second", headings, rows), words=["trace"], spare=["counted"],
        note=", ".join(changed) or "the default is the fastest",
    )  # fmt: skip


def write_trials(folder: Path, study: optuna.Study) -> Path:
    """All finished trials as trials.csv and trials.parquet: parameters, gain, how far they came."""
    rows = [
        {
            "trial": place,
            "gain": (trial.value or 0.0) - 1,
            "whole": trial.state == optuna.trial.TrialState.COMPLETE,
            "requests": len(trial.intermediate_values),
            **trial.params,
        }
        for place, trial in enumerate(finished(study))
    ]
    return write_table(folder, pd.DataFrame(rows), TRIALS)[1]


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value).lower()
