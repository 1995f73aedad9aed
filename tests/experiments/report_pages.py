"""An invented comparison with all that a page shows, and the page made of it."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.pictures import draw_all, draw_details
from experiments.ranking import standing
from experiments.report_page.contents import page_of
from experiments.report_page.page import Page, render
from experiments.winner import winner_of
from tests.experiments.comparison_rows import comparison_rows

LAYERS = 8
PREFETCHING = {"spac": (60, 30, 10), "lru_cpu": (50, 0, 50)}  # useful, late, wasted
RECORD = {
    "command": "compare",
    "config": {
        "hardware": {"name": "rtx4090", "link": {"bytes_per_second": 25_100_000_000}},
        "trace": ["code", "prose"],
        "budget": None,
        "pictures": True,
    },
    "inputs": {"/home/somebody/traces/code": "ab" * 32, "/elsewhere/prose": "cd" * 32},
    "planned_rows": None,
    "source_hash": "0123456789abcdef",
    "python": "3.11.7",
    "machine": "x86_64",
    "versions": {"numpy": "2.4.6", "torch": "absent"},
}


def report_rows(
    ratios: tuple[float, ...] = (0.17,), gammas: tuple[int, ...] = (4,), bounded: bool = True
) -> pd.DataFrame:
    """comparison_rows with copies, stalls, hits by layer, and bounds at twice the fastest speed."""
    rows = comparison_rows(ratios, gammas)
    seconds = 100.0 / rows["tokens_per_second"]
    fates = np.array([PREFETCHING.get(policy, (0, 0, 0)) for policy in rows["policy"]])
    ramp = np.linspace(0.0, 0.2, LAYERS)
    rows = rows.assign(
        committed_tokens=100,
        decode_seconds=seconds,
        gpu_stall_seconds=seconds * 0.4,
        cpu_stall_seconds=seconds * 0.1,
        prefetches=fates.sum(axis=1),
        prefetches_useful=fates[:, 0],
        prefetches_late=fates[:, 1],
        prefetches_wasted=fates[:, 2],
        link_busy_share=0.5,
        trace_experts=64,
        slots=87,
        policy_name=rows["policy"],
        target="policies.zoo." + rows["policy"],
        parameters='{"levels": 5}',
        hits_by_layer=[rate + ramp for rate in rows["hit_rate_per_token"]],
    )
    if bounded:
        fastest = rows.groupby(["workload", "cache_ratio", "gamma"])["tokens_per_second"]
        rows = rows.assign(bound="fast", bound_seconds=50.0 / fastest.transform("max"))
    return rows


def report_page(rows: pd.DataFrame, drawn: dict[str, Figure] | None = None) -> Page:
    """The page of `rows`, with all its pictures unless others are given."""
    main = rows[~rows["sweep"]]
    result = standing(main)
    winner = winner_of(main, result, "0123", {})
    if drawn is None:
        drawn = draw_all(rows, None, result.partial) | draw_details(rows)
    return page_of(rows, RECORD, result, None, {"out/winner.yaml": winner}, drawn, None, "")


def report_html(rows: pd.DataFrame) -> str:
    """The page as it is written."""
    return render(report_page(rows))
