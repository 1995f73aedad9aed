"""The numbers behind the pictures of one setting: where experts were computed, what copies did."""

import pandas as pd

from experiments.copy_figures import FATES, MILLISECONDS, per_token
from experiments.ranking import TPS
from experiments.ranking_table import share, three_digits
from experiments.text_table import TextRow, TextTable

MEGABYTE = 1e6
SHARES = {
    "hit_rate_per_token": "hits",
    "share_gpu": "GPU",
    "share_fetch": "fetched",
    "share_stream": "streamed",
    "share_cpu": "CPU",
}
NOTE = (
    "Means over workloads, fastest policy first. hits: of active experts, counted by tokens; GPU, "
    "fetched, streamed, CPU: where active experts were computed, resident or after a copy; "
    "useful, late, wasted: of all prefetches; MB: copied per committed token; ms: time per token, "
    "and how much of it each lane waited; link busy: part of the time."
)


def breakdown_table(rows: pd.DataFrame, title: str, winner: str) -> TextTable:
    """One line per policy of the rows of one setting."""
    played = rows.groupby("policy", sort=False)
    means = played[[TPS, *SHARES, "link_busy_share"]].mean().sort_values(TPS, ascending=False)
    sums = played[["prefetches", *FATES]].sum()
    foreseeing = played["clairvoyant"].first()
    megabytes = per_token(rows, "bytes_copied") / MEGABYTE
    whole, gpu, cpu = (
        per_token(rows, column) * MILLISECONDS
        for column in ("decode_seconds", "gpu_stall_seconds", "cpu_stall_seconds")
    )
    content = []
    for policy, mean in means.iterrows():
        prefetches = sums.loc[policy, "prefetches"]
        fates = [
            share(sums.loc[policy, fate] / prefetches) if prefetches else "-" for fate in FATES
        ]
        times = [f"{part[policy]:.2f}" for part in (whole, gpu, cpu)]
        cells = [
            f"{policy}*" if foreseeing[policy] else str(policy),
            *(share(mean[column]) for column in SHARES),
            *fates,
            three_digits(megabytes[policy]),
            *times,
            share(mean["link_busy_share"]),
        ]
        content.append(TextRow(cells, policy == winner))
    headings = [
        "policy", *SHARES.values(), "useful", "late", "wasted", "MB", "ms", "GPU waits",
        "CPU waits", "link busy",
    ]  # fmt: skip
    return TextTable(title, headings, content)
