"""A table whose cells are ready to be read, for the terminal and for a page alike."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TextRow:
    """One row; `first`: of the winner, to be set apart; `style`: of the terminal alone."""

    cells: Sequence[str]
    first: bool = False
    style: str = ""


@dataclass(frozen=True)
class TextTable:
    """The first column names the row, the others hold numbers as text."""

    title: str
    headings: Sequence[str]
    rows: Sequence[TextRow]
