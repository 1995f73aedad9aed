"""Tables that fit the terminal: headings break, then long texts, then spare columns are left out
and named, and at last rows are stacked. Nothing is cut off."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from experiments.text_table import TextRow, TextTable

LEAST_TEXT = 24  # a text that breaks gets at least this many columns
GAP, EDGES = 2, 2  # columns between two columns, and around the table


@dataclass(frozen=True)
class FittedTable:
    """`content` for a terminal. By heading: `words` are aligned to the left, as the first column
    is; `texts` are those of them that may break over lines; `spare` may be left out, the first one
    first; `bare`: headings are not shown."""

    content: TextTable
    words: Collection[str] = ()
    texts: Collection[str] = ()
    spare: Sequence[str] = ()
    note: str = ""
    bare: bool = False

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        if self.content.title:
            yield Text(self.content.title, style="bold")
        left_out: list[str] = []
        places = list(range(len(self.content.headings)))
        widths = self._widths(places, options.max_width)
        for name in self.spare:
            if widths is None and name in self.content.headings:
                left_out.append(name)
                places.remove(self.content.headings.index(name))
                widths = self._widths(places, options.max_width)
        if widths is None:  # not even so: everything, below each other
            yield self._stacked()
            left_out = []
        else:
            yield self._side_by_side(places, widths)
        if left_out:
            yield Text(
                f"no room for {', '.join(left_out)}: a wider terminal shows more", style="dim"
            )
        if self.note:
            yield Text(self.note, style="dim")

    def _widths(self, places: Sequence[int], room: int) -> list[int] | None:
        """Width of each column at `places`, None if they cannot stand side by side in `room`."""
        cells = [[row.cells[place] for row in self.content.rows] for place in places]
        headings = [self.content.headings[place] for place in places]
        natural = [max(map(cell_len, [*column, ""])) for column in cells]
        broken = [max(map(cell_len, heading.split()), default=0) for heading in headings]
        whole = [max(pair) for pair in zip(natural, map(cell_len, headings), strict=True)]
        without_headings = [max(pair) for pair in zip(natural, broken, strict=True)]
        short = [
            min(width, LEAST_TEXT) if heading in self.texts else width
            for width, heading in zip(whole, headings, strict=True)
        ]
        both = [min(pair) for pair in zip(without_headings, short, strict=True)]
        excess = sum(whole) + GAP * (len(places) - 1) + EDGES - room
        for least in (without_headings, short, both):
            if sum(whole) - sum(least) >= excess:
                return narrowed(whole, least, excess)
        return None

    def _side_by_side(self, places: Sequence[int], widths: Sequence[int]) -> Table:
        headings = [self.content.headings[place] for place in places]
        table = Table(
            box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, show_header=not self.bare
        )
        for place, heading, width in zip(places, headings, widths, strict=True):
            words = place == 0 or heading in self.words or heading in self.texts
            table.add_column(
                Text(heading), width=width, overflow="fold", justify="left" if words else "right"
            )
        for row in self.content.rows:
            table.add_row(*(Text(row.cells[place]) for place in places), style=style_of(row))
        return table

    def _stacked(self) -> Text:
        lines = Text()
        for row in self.content.rows:
            first, *rest = row.cells
            lines.append(f"\n{first}\n", style="bold")
            for heading, cell in zip(self.content.headings[1:], rest, strict=True):
                if cell:
                    lines.append(f"  {cell}\n" if self.bare else f"  {heading}: {cell}\n")
        return lines


def narrowed(widths: Sequence[int], least: Sequence[int], excess: int) -> list[int]:
    """`widths` less `excess` in all, taken from the widest, none below `least`."""
    found = list(widths)
    for _ in range(excess):
        open_places = [place for place, width in enumerate(found) if width > least[place]]
        found[max(open_places, key=found.__getitem__)] -= 1
    return found


def style_of(row: TextRow) -> str | None:
    """How the terminal shows a row."""
    return "bold" if row.first else row.style or None
