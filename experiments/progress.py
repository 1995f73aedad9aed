"""Progress bars of the commands."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


@contextmanager
def progress_bar(
    console: Console, title: str, total: int, done: int = 0
) -> Iterator[Callable[[str], None]]:
    """Yields a function to call after each finished piece, with a word on it. `done`: pieces
    finished at an earlier start, which do not count for the time left."""
    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(),
        TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[last]}"),
    )  # fmt: skip
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=total, completed=done, last="")
        yield lambda last: bar.update(task, advance=1, last=last)
