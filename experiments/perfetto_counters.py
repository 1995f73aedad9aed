"""Counter tracks of a Perfetto trace: what the slots and the link hold, as steps over time."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from experiments.perfetto_span import Span
from traces.runlog_schema import COPY_STREAM


def counters(span: Span) -> Iterator[dict[str, Any]]:
    """Counter events in ns of the run.

    A slot is on its way from the issue of a copy, when its old expert leaves, to the landing. The
    rest holds an expert or was never filled: a run log does not tell what was there at its begin.
    """
    copies = span.log.copies
    into_slots = copies[copies["kind"] != COPY_STREAM]
    on_its_way = steps(into_slots["issue_ns"], into_slots["landing_ns"])
    series = {
        "slots on their way": on_its_way,
        "slots settled": span.log.info.slots - on_its_way,
        "copies waiting for the link": steps(copies["issue_ns"], copies["begin_ns"]),
    }
    resting = {"slots on their way": 0, "slots settled": span.log.info.slots}
    for name, values in series.items():
        before = values[values.index <= span.begin_ns]
        start = int(before.iloc[-1]) if len(before) else resting.get(name, 0)
        inside = values[(values.index > span.begin_ns) & (values.index <= span.end_ns)]
        for time_ns, value in [(span.begin_ns, start), *inside.items()]:
            yield {
                "ph": "C", "name": name, "tid": 0, "ts": int(time_ns), "args": {"": int(value)},
            }  # fmt: skip


def steps(begins: "pd.Series[int]", ends: "pd.Series[int]") -> "pd.Series[int]":
    """How many intervals are open, at each moment at which that changes; index in ns."""
    times = np.concatenate([begins.to_numpy(np.int64), ends.to_numpy(np.int64)])
    signs = np.concatenate([np.ones(len(begins), np.int64), -np.ones(len(ends), np.int64)])
    changes = pd.Series(signs, index=times).groupby(level=0).sum().sort_index()
    return changes.cumsum()[changes != 0]
