"""What is possible in a cell, as a bracket: the fastest schedule that was really simulated, and the
speed that no schedule can exceed. Pure functions of a comparison's table.

The upper end is the highest over the ways to decode that the cell's rows use (its window with the
draft, windows of the policy's choice, no draft), each from a lower bound on time. What is possible
lies between the two, so a row reaches between TPS / upper end and TPS / lower end of it.
"""

import pandas as pd

from experiments.cell import CELL, TPS

BOUND_SECONDS = "bound_seconds"
LOW, HIGH = "possible_low", "possible_high"
SHARE_LOW, SHARE_HIGH = "of_possible_low", "of_possible_high"


def is_bounded(rows: pd.DataFrame) -> bool:
    """True if all rows have a bound; an interrupted comparison has none."""
    return BOUND_SECONDS in rows and bool(rows[BOUND_SECONDS].notna().all())


def with_possible(rows: pd.DataFrame) -> pd.DataFrame:
    """`rows` with the bracket of their cell in tokens per second and their shares of it; unchanged
    where a bound is missing."""
    if not is_bounded(rows):
        return rows
    keys = [rows[key] for key in CELL]
    limit = rows["committed_tokens"] / rows[BOUND_SECONDS]
    low = rows[TPS].groupby(keys).transform("max")
    high = limit.groupby(keys).transform("max")
    return rows.assign(
        **{LOW: low, HIGH: high, SHARE_LOW: rows[TPS] / high, SHARE_HIGH: rows[TPS] / low}
    )


def share_range(low: float, high: float) -> str:
    """Both ends of a share, rounded outwards: "61-88%"."""
    if pd.isna(low) or pd.isna(high):
        return "-"
    # The ends are rounded so that the range never says more than is known.
    down, up = int(low * 100 + 1e-9), -int(-high * 100 // 1)
    return f"{down}-{min(up, 100)}%" if down < up else f"{up}%"
