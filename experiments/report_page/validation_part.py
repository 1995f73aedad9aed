"""What `spac validate` found, read from its folder: is the simulator right?"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.report_page.picture import Picture, png_picture
from experiments.text_table import TextRow, TextTable
from policies.errors import UserError

VALIDATION_FILE = "validation.json"
KEPT = Path(__file__).resolve().parents[1] / "results" / "validation"
HEADINGS = (
    "policy", "predicted s", "measured s", "error", "noise", "hits", "points apart", "bytes apart",
    "exact in logical time",
)  # fmt: skip


@dataclass(frozen=True)
class ClockPart:
    """One clock: its verdicts in words, failures included, its table and its picture."""

    name: str
    note: str
    verdicts: Sequence[str]
    table: TextTable
    picture: Picture | None


def read_validation(given: str | None) -> list[ClockPart] | None:
    """The validation in folder `given`, else the one kept with the results; None if there is none.

    UserError where `given` holds none, or where a file is damaged.
    """
    folder = KEPT if given is None else Path(given)
    path = folder / VALIDATION_FILE
    if not path.is_file():
        if given is None:
            return None
        raise UserError(f"{path}: no such file; give the output folder of spac validate")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return [_clock(one, folder) for one in data]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: not what spac validate writes ({error!r})") from error


def source_of_validation(given: str | None) -> str:
    """Where it comes from: the one kept with the project is of its makers' machine."""
    if given is None:
        return (
            "The validation that is kept with the project, of the machine of its makers. One of "
            "your own: spac validate, then spac report validation=FOLDER."
        )
    return f"The validation in {given}."


def _clock(data: Mapping[str, Any], folder: Path) -> ClockPart:
    name, note = str(data["name"]), str(data["note"])
    rows = sorted(data["policies"], key=lambda row: float(row["measured_seconds"]))
    title = f"{name} clock: times predicted by the simulator and measured by the engine"
    table = TextTable(title, HEADINGS, [_row(row) for row in rows])
    verdicts = [str(line).removeprefix(f"{name}: ") for line in data["verdicts"]]
    # The name comes from a file: it may only choose a picture that lies in the same folder.
    drawn = {path.stem: path for path in folder.glob("*.png")}.get(name)
    caption = "Decode time of the same passes, with fastest and slowest run."
    finding = f"{name.capitalize()} clock: {verdicts[0] if verdicts else 'no verdict'}"
    picture = None if drawn is None else png_picture(drawn, finding, caption)
    return ClockPart(name, note, verdicts, table, picture)


def _row(row: Mapping[str, Any]) -> TextRow:
    return TextRow(
        [
            str(row["policy"]),
            f"{float(row['predicted_seconds']):.2f}",
            f"{float(row['measured_seconds']):.2f}",
            f"{float(row['error']):+.1%}",
            f"{float(row['noise']):.1%}",
            f"{float(row['measured_hit_rate']):.1%}",
            f"{float(row['hit_difference_points']):+.1f}",
            f"{float(row['bytes_difference']):+.1%}",
            "yes" if row["logical_exact"] else "no",
        ]
    )
