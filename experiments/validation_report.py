"""What a validation prints: a table per clock, then verdicts in plain words."""

import os
from collections.abc import Sequence

from experiments.fitted_table import FittedTable
from experiments.text_table import TextRow, TextTable
from experiments.validation import PADDED, Validation
from traces.size_text import size_text

CORES = os.cpu_count() or 1
HITS_GOAL, BYTES_GOAL = 0.5, 0.01  # points; relative


def validation_table(result: Validation) -> FittedTable:
    """One row per policy, fastest first."""
    slow = "; seconds of the padded clock" if result.name == PADDED else ""
    rows = []
    for one in sorted(result.agreements, key=lambda each: each.measured_seconds):
        cells = [
            one.policy,
            f"{one.predicted_seconds:.2f} s",
            f"{one.measured_seconds:.2f} s",
            f"{one.error:+.1%}",
            f"{one.noise:.1%}" if one.repeats > 1 else "?",
            f"{one.measured_hit_rate:.1%}",
            f"{one.hit_difference:+.1f}",
            size_text(one.measured_bytes),
            f"{one.bytes_difference:+.1%}",
            f"{one.predicted_stall_seconds:.1f}/{one.measured_stall_seconds:.1f} s",
        ]
        rows.append(TextRow(cells))
    note = (
        "noise: half the spread of "
        f"{result.agreements[0].repeats} runs, ? after one; hits of active experts and what was "
        "copied are the measured ones, beside them how much that is above the prediction, in "
        "points and in %; stalls, waits of both lanes: predicted/measured"
    )
    headings = ["policy", "predicted", "measured", "error", "noise", "hits", "points", "copied",
                "above", "stalls"]  # fmt: skip
    content = TextTable(f"{result.name}: {result.note}{slow}", headings, rows)
    return FittedTable(content, spare=["stalls", "points", "above", "noise"], note=note)


def verdicts(result: Validation) -> list[str]:
    """What was aimed at and what was found, failures included."""
    mean = sum(abs(one.error) for one in result.agreements) / len(result.agreements)
    worst = result.worst
    noise = f"{worst.noise:.1%} noise" if worst.repeats > 1 else "unknown noise, after one run"
    gap = result.gap
    order = (
        "the pair farthest apart is ordered wrong"
        if gap is None
        else f"all pairs that differ by {gap:.1%} or more are ordered right"
    )
    lines = [
        f"{result.name}: time is predicted within {mean:.1%} in the mean, worst {worst.policy} "
        f"{worst.error:+.1%} with {noise}",
        f"{result.name}: Kendall tau {tau_words(result)}; {order}",
    ]
    if result.goal is not None:
        missed = [one.policy for one in result.agreements if abs(one.error) > result.goal]
        lines.append(f"{result.name}: {_goal(f'error at most {result.goal:.0%}', missed)}")
    if result.seen:
        lines.append(
            f"{result.name}: not held out, the calibration has used it too: "
            f"{', '.join(result.seen)}"
        )
    hits = [one.policy for one in result.agreements if abs(one.hit_difference) > HITS_GOAL]
    size = [one.policy for one in result.agreements if abs(one.bytes_difference) > BYTES_GOAL]
    lines.append(f"{result.name}: {_goal(f'live hits within {HITS_GOAL} points', hits)}")
    lines.append(f"{result.name}: {_goal(f'live bytes within {BYTES_GOAL:.0%}', size)}")
    lines.append(f"{result.name}: load average of the machine {result.load:.1f} on {CORES} cores")
    inexact = [name for name, one in result.logical.items() if not one.exact]
    lines.append(f"{result.name}: {_goal('logical time: hits and bytes exact', inexact)}")
    return lines


def tau_words(result: Validation) -> str:
    """Kendall's tau, or that there is none."""
    return "undefined, no order in equal times" if result.tau is None else f"{result.tau:.2f}"


def _goal(what: str, missed: Sequence[str]) -> str:
    return f"{what}: met by all" if not missed else f"{what}: MISSED by {', '.join(missed)}"
