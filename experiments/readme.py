"""The README's tables and picture: `python -m experiments.readme [FOLDER]`, from `make readme`.

FOLDER, a comparison, gives table.csv and the picture, kept in experiments/results/readme/.
The parts of README.md between markers are rewritten from what is kept: the results, the last
validation and the last bench. A test plays some of the rows again and compares.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.bench_report import goals_table
from experiments.possible import (
    HIGH,
    SHARE_HIGH,
    SHARE_LOW,
    is_bounded,
    share_range,
    with_possible,
)
from experiments.ranking import TPS, standing, with_relations
from experiments.script import Options, run_script
from policies.errors import UserError
from traces.atomic import write_atomically
from traces.strict_json import read_json

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "experiments" / "results" / "readme"
VALIDATION = ROOT / "experiments" / "results" / "validation" / "validation.json"
BENCH = ROOT / "experiments" / "results" / "bench" / "bench.json"
RESULTS_PART, VALIDATION_PART, BENCH_PART = "results", "validation", "bench"
PICTURE = "tps_by_policy.png"
KEPT = ("table.csv", PICTURE)


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


def validation_section(clocks: Sequence[Mapping[str, Any]]) -> str:
    """The Markdown of the last validation: a row for each clock, and how busy the machine was."""
    busiest = max(clocks, key=lambda clock: clock["load_average"])
    lines = [
        f"As last measured, at a load average of {busiest['load_average']:.0f} on "
        f"{busiest['cores']} cores. *Padded*: every operation takes a published machine's time, "
        "which tests order and overlap; *unpadded*: predicted from a calibration.",
        "",
        "| clock | policies | error of time, mean | worst | Kendall's tau | "
        "hits and bytes equal in logical time |",
        "|---|---:|---:|---|---:|---:|",
    ]
    for clock in clocks:
        worst, policies = clock["worst_error"], clock["policies"]
        tau = "-" if clock["kendall_tau"] is None else f"{clock['kendall_tau']:.2f}"
        exact = sum(policy["logical_exact"] for policy in policies)
        lines.append(
            f"| {clock['name']} | {len(policies)} | {clock['mean_absolute_error']:.1%} | "
            f"`{worst['policy']}` {worst['error']:+.1%} | {tau} | {exact} of {len(policies)} |"
        )
    missed = [line for clock in clocks for line in clock["verdicts"] if "MISSED" in line]
    goals = "; ".join(line.replace("MISSED by", "missed by") for line in missed)
    return "\n".join([*lines, "", f"Goals: {goals}." if missed else "All goals were met."])


def markers(part: str) -> tuple[str, str]:
    """The comments around a generated part of the README."""
    return f"<!-- {part}: begin -->", f"<!-- {part}: end -->"


def between_markers(text: str, part: str = RESULTS_PART) -> str:
    """What README.md holds between the markers of `part`."""
    begin, end = markers(part)
    return text.split(begin, 1)[1].split(end, 1)[0].strip()


def with_section(text: str, part: str, section: str) -> str:
    """`text` with another part between the markers."""
    begin, end = markers(part)
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise UserError(f"README.md: the part between {begin} and {end} is not there once")
    head, rest = text.split(begin, 1)
    return f"{head}{begin}\n{section}\n{end}{rest.split(end, 1)[1]}"


def main(folder: Path | None) -> int:
    """Rewrite the README's generated parts, after taking the files of the comparison `folder`."""
    source, readme = folder or RESULTS, ROOT / "README.md"
    # Everything is read and laid out before anything kept is replaced.
    text = with_section(readme.read_text(encoding="utf-8"), RESULTS_PART, section_of(source))
    validation = validation_section(read_json(VALIDATION, "spac validate writes such a file"))
    text = with_section(text, VALIDATION_PART, validation)
    bench = goals_table(read_json(BENCH, "spac bench copy_to= writes such a file"))
    text = with_section(text, BENCH_PART, bench)
    if folder is not None:
        files = {name: (folder / name).read_bytes() for name in KEPT}
        RESULTS.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            write_atomically(RESULTS / name, data)
    write_atomically(readme, text.encode())
    return 0


def section_of(folder: Path) -> str:
    """The results in the table of a comparison; UserError for a folder without one."""
    path = folder / KEPT[0]
    try:
        return results_section(pd.read_csv(path))
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise UserError(
            f"{path}: no table of a comparison ({type(error).__name__}: {error}); spac compare "
            "writes one"
        ) from error


def folder_given() -> Path | None:
    """The comparison that the command line names."""
    options = Options(prog="python -m experiments.readme", description=__doc__)
    options.add_argument("folder", nargs="?", type=Path, help="output folder of a comparison")
    given: Path | None = options.parse_args().folder
    return given


if __name__ == "__main__":
    sys.exit(run_script(lambda: main(folder_given())))
