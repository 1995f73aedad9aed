"""All figures of one run as a table."""

import math

from experiments.fitted_table import FittedTable
from experiments.metric_words import GROUPS
from experiments.text_table import TextRow, TextTable
from traces.metrics import Metrics
from traces.size_text import size_text

MEANING = "meaning"


def metrics_table(result: Metrics, title: str, belady_hit_rate: float | None = None) -> FittedTable:
    """All figures in groups, each with its unit and its meaning, with the note on approximation.
    `belady_hit_rate`: what Belady's rule would reach with the same windows and slots."""
    note = " (approximate: text trace)" if result.approximate else ""
    rows = []
    for group in GROUPS:
        rows += [
            TextRow([label, shown(name, getattr(result, name)), meaning])
            for name, (label, meaning) in group.items()
        ]
        if belady_hit_rate is not None and "hit_rate_per_expert" in group:
            meaning = "of Belady's rule here, copies on demand"
            rows.append(TextRow(["hit rate possible", f"{belady_hit_rate:.1%}", meaning]))
        rows.append(TextRow(["", "", ""]))
    content = TextTable(title + note, ["figure", "value", MEANING], rows[:-1])
    return FittedTable(content, texts=[MEANING])


def shown(name: str, value: object) -> str:
    """A figure with its unit."""
    if isinstance(value, int):
        return size_text(value) if name.startswith("bytes_") else f"{value:,}"
    assert isinstance(value, float)
    if math.isnan(value):
        return "-"
    if name.endswith("_seconds") or name == "seconds_per_token":
        return f"{value * 1e3:,.3g} ms" if value < 1 else f"{value:,.2f} s"
    if "rate" in name or "share" in name or name.startswith("acceptance"):
        return f"{value:.1%}"
    return f"{value:,.1f}" if value >= 100 else f"{value:.2f}"
