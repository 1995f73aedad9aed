"""All figures of one run as a table."""

import math
from dataclasses import fields

from rich.table import Table

from traces.metrics import Metrics


def metrics_table(result: Metrics, title: str) -> Table:
    """All metrics, one per line, with the note on approximation."""
    note = " (approximate: text trace)" if result.approximate else ""
    table = Table("metric", "value", title=title + note)
    for field in fields(result):
        value = getattr(result, field.name)
        label = field.name.removesuffix("_seconds").replace("_", " ")
        table.add_row(label, shown(field.name, value))
    return table


def shown(name: str, value: object) -> str:
    """A metric with its unit."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    assert isinstance(value, float)
    if math.isnan(value):
        return "-"
    if name.endswith("_seconds") or name == "seconds_per_token":
        return f"{value * 1e3:.3f} ms" if value < 1 else f"{value:.3f} s"
    if "rate" in name or "share" in name or name.startswith("acceptance"):
        return f"{value:.1%}"
    return f"{value:.3f}"
