"""The README's table and picture, made from a comparison: `python -m experiments.readme FOLDER`.

It copies table.csv and the picture to experiments/results/readme/ and rewrites the part of
README.md between the two
markers. A test plays some of the rows again and compares.
"""

import shutil
import sys
from pathlib import Path

import pandas as pd

from experiments.possible import (
    HIGH,
    SHARE_HIGH,
    SHARE_LOW,
    is_bounded,
    share_range,
    with_possible,
)
from experiments.ranking import TPS, standing, with_relations

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "experiments" / "results" / "readme"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
PICTURE = "tps_by_policy.png"


def results_section(rows: pd.DataFrame) -> str:
    """The Markdown between the markers: one sentence, then TPS of every policy by workload; where
    the table has bounds also what is possible, and every policy's share of it."""
    related = with_possible(with_relations(rows))
    bounded = is_bounded(rows)
    speeds = related.pivot(index="policy", columns="workload", values=TPS)
    grouped = related.groupby("policy")
    shares = [f"{share:.0%}" for share in grouped["of_oracle"].mean()]
    if bounded:
        ends = grouped[[SHARE_LOW, SHARE_HIGH]].mean().itertuples(index=False)
        shares = [share_range(low, high) for low, high in ends]
    order = grouped["of_oracle"].mean().rank(ascending=False, method="first").astype(int)
    foresight = set(rows.loc[rows["clairvoyant"], "policy"])
    result = standing(rows)
    possible = f", and at least {result.of_possible:.0%} of what is possible" if bounded else ""
    column = "of what is possible" if bounded else "of the best clairvoyant"
    lines = [
        f"`{result.winner}` wins, {result.lead:.0%} faster than `{result.runner_up}`; it reaches "
        f"{result.of_oracle:.0%} of the best clairvoyant policy{possible}.",
        "",
        "| policy | " + " | ".join(speeds.columns) + f" | {column} |",
        "|---|" + "---:|" * (len(speeds.columns) + 1),
    ]
    if bounded:
        limits = related.groupby("workload")[HIGH].first()[list(speeds.columns)]
        lines.append("| *upper bound* | " + " | ".join(f"{limit:.0f}" for limit in limits) + " | |")
    for policy, share in sorted(
        zip(grouped.groups, shares, strict=True), key=lambda one: order[one[0]]
    ):
        cells = " | ".join(f"{value:.0f}" for value in speeds.loc[policy])
        star = "*" if policy in foresight else ""
        lines.append(f"| `{policy}`{star} | {cells} | {share} |")
    return "\n".join(lines)


def between_markers(text: str) -> str:
    """What README.md holds between the markers."""
    return text.split(BEGIN, 1)[1].split(END, 1)[0].strip()


def main(folder: Path) -> int:
    """Rewrite the README's results from the comparison in `folder`."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in ("table.csv", PICTURE):
        shutil.copyfile(folder / name, RESULTS / name)
    readme = ROOT / "README.md"
    head, rest = readme.read_text().split(BEGIN, 1)
    section = results_section(pd.read_csv(RESULTS / "table.csv"))
    readme.write_text(f"{head}{BEGIN}\n{section}\n{END}{rest.split(END, 1)[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
