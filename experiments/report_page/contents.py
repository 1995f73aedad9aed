"""What a comparison's page says: its outcome, tables, pictures and provenance, gathered."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from experiments.breakdown_table import NOTE, breakdown_table
from experiments.cell import TPS
from experiments.heat_maps import has_hits
from experiments.pictures import winning_cells
from experiments.possible import is_bounded
from experiments.ranking import Standing, drafting_sentence, sentence
from experiments.ranking_table import ranking_note, ranking_tables
from experiments.report_page.page import Page
from experiments.report_page.picture import Picture, drawn_picture
from experiments.report_page.provenance_part import (
    inputs_table,
    settings_tables,
    versions_table,
    winner_table,
)
from experiments.report_page.validation_part import ClockPart
from experiments.winner import Winner

CAPTIONS = {
    "tps_by_policy": "Bars: tokens per second of each policy in each workload. Dashed: the best "
    "policy that sees the future. Grey: the fastest possible schedule lies in there.",
    "placements": "Where the experts that a layer needed were computed.",
    "tps_over_cache_ratio": "Mean over the workloads that were played at every cache ratio.",
    "tps_over_gamma": "Mean over the workloads that were played with every window.",
    "hits_by_policy": "Share of a layer's active experts that were in a slot when the router had "
    "chosen them; brighter is more. Mean over workloads.",
    "hits_by_workload": "The same of the winner alone, by workload.",
    "prefetches": "What became of the copies that a policy made ahead of need, over all workloads; "
    "policies that make none are left out.",
    "stalls": "Grey: time per token. Coloured: how much of it each lane could have computed "
    "experts and waited instead.",
    "verify_pass_lanes": "One pass of ordinary length on the first workload: what GPU, CPU and "
    "link did when.",
}


def page_of(
    rows: pd.DataFrame,
    record: Mapping[str, Any],
    result: Standing,
    drafting: Standing | None,
    winners: Mapping[str, Winner],
    drawn: Mapping[str, Figure],
    validation: Sequence[ClockPart] | None,
    validation_source: str,
) -> Page:
    """`rows`: the whole table; `record`: its run.json; `winners`: by file; `drawn`: by stem."""
    main, base = rows[~rows["sweep"]], winning_cells(rows)
    ratio, gamma = base["cache_ratio"].iloc[0], base["gamma"].iloc[0]
    setting = f"cache ratio {ratio:.0%}, gamma {gamma}"
    pictures = [_picture(stem, figure) for stem, figure in drawn.items()]
    return Page(
        title=f"{result.winner} is fastest{' so far' if result.partial else ''}",
        findings=[
            sentence(result),
            *([drafting_sentence(drafting)] if drafting is not None else []),
            _scope(main),
        ],
        warnings=_warnings(rows, result),
        figures=_figures(base, result),
        ranking=ranking_tables(base, hits=True),
        other_settings=ranking_tables(main.drop(base.index), hits=True),
        ranking_note=ranking_note(main, hits=True),
        speed_pictures=_named(pictures, "tps_by_policy"),
        sweep_pictures=_named(pictures, "tps_over"),
        layer_pictures=_named(pictures, "hits_by"),
        copy_pictures=_named(pictures, "stalls", "prefetches", "placements", "verify_pass"),
        breakdown=breakdown_table(base, f"by policy, {setting}", result.winner),
        breakdown_note=NOTE,
        missing=_missing(base, drawn),
        winners=[winner_table(winner) for winner in winners.values()],
        winner_files=list(winners),
        validation=validation,
        validation_source=validation_source,
        settings=settings_tables(record),
        inputs=inputs_table(record),
        versions=versions_table(record),
    )


def _picture(stem: str, figure: Figure) -> Picture:
    (caption,) = (text for name, text in CAPTIONS.items() if stem.startswith(name))
    return drawn_picture(stem, figure, caption)


def _named(pictures: Sequence[Picture], *stems: str) -> list[Picture]:
    return [one for stem in stems for one in pictures if one.name.startswith(stem)]


def _scope(rows: pd.DataFrame) -> str:
    policies, workloads = rows["policy"].nunique(), list(dict.fromkeys(rows["workload"]))
    models = " and ".join(dict.fromkeys(rows["model"]))
    machines = " and ".join(dict.fromkeys(rows["hardware"]))
    return (
        f"Compared: {policies} policies on {len(workloads)} "
        f"workload{'s' if len(workloads) != 1 else ''} ({', '.join(workloads)}) with the costs of "
        f"{models} on {machines}."
    )


def _warnings(rows: pd.DataFrame, result: Standing) -> list[str]:
    found = [
        "The speeds compared here are simulated from the hardware profile below, not measured."
    ]
    if result.approximate:
        found.append("Approximate: text traces cannot tell what rejected drafts would have routed.")
    if result.partial:
        found.append(f"Provisional: the comparison was interrupted after {len(rows)} rows.")
    return found


def _figures(base: pd.DataFrame, result: Standing) -> list[tuple[str, str]]:
    """The numbers that a reader in a hurry takes away."""
    speed = base.loc[base["policy"] == result.winner, TPS].mean()
    found = [("tokens per second, mean over workloads", f"{speed:.0f}")]
    if result.lead is not None:
        found.append((f"faster than {result.runner_up}", f"{result.lead:.1%}"))
    if result.of_oracle is not None:
        found.append(("of the best clairvoyant policy", f"{result.of_oracle:.0%}"))
    if result.of_possible is not None:
        found.append(("of what is possible, at least", f"{result.of_possible:.0%}"))
    return found


def _missing(base: pd.DataFrame, drawn: Mapping[str, Figure]) -> list[str]:
    """What the page would show and cannot, with the reason."""
    found = []
    if not drawn:
        found.append("No pictures, as asked: pictures=false.")
    if not has_hits(base):
        found.append("This table has no hits by layer; spac compare now keeps them: run it again.")
    if not is_bounded(base):
        found.append("This table has no bounds: bound=none, an older version, or an interruption.")
    if not base["prefetches"].any():
        found.append("No policy of this comparison prefetches.")
    return found
