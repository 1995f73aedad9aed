"""Tables at every width: no line is longer than the terminal, and no word of a cell is lost."""

import io

import pytest
from rich.console import Console

from experiments.fitted_table import FittedTable, narrowed
from experiments.text_table import TextRow, TextTable

LONG = "a policy that keeps what was used last and copies the rest when it is asked for"
CONTENT = TextTable(
    "what was measured",
    ["policy", "tokens per second", "hits of experts", "noise", "about"],
    [
        TextRow(["lru_cpu_no_speculation", "1234.5", "98.7%", "0.1%", LONG]),
        TextRow(["spac [bold]x", "9.1", "-", "12.0%", "short"], first=True),
    ],
)


def shown(table: FittedTable, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(table)
    return console.export_text().splitlines()


@pytest.mark.parametrize("width", range(30, 171, 7))
def test_every_width_shows_every_cell(width: int) -> None:
    lines = shown(FittedTable(CONTENT, texts=["about"]), width)
    assert max(map(len, lines)) <= width
    words = " ".join(" ".join(lines).split())
    for cell in ("lru_cpu_no_speculation", "1234.5", "98.7%", "12.0%", "spac [bold]x", "short"):
        assert cell in words
    assert all(word in words for word in LONG.split()) and "\u2026" not in words


def test_headings_break_before_texts_do() -> None:
    whole = sum(map(len, ["lru_cpu_no_speculation", *CONTENT.headings[1:4], LONG])) + 4 * 2 + 2
    rows = [line for line in shown(FittedTable(CONTENT, texts=["about"]), whole) if LONG in line]
    assert len(rows) == 1
    narrower = shown(FittedTable(CONTENT, texts=["about"]), whole - 9)
    assert any(LONG in line for line in narrower), "the row is still one line"
    assert not any("tokens per second" in line for line in narrower)


def test_spare_columns_go_in_their_order_and_are_named() -> None:
    table = FittedTable(CONTENT, texts=["about"], spare=["noise", "hits of experts"])
    least = len("lru_cpu_no_speculation") + 6 + 7 + 5 + 24 + 4 * 2 + 2
    assert not any("no room" in line for line in shown(table, least))
    one = " ".join(shown(table, least - 1))
    assert "no room for noise:" in one and "12.0%" not in one and "98.7%" in one
    two = " ".join(" ".join(shown(table, least - 8)).split())
    assert "no room for noise, hits of experts:" in two and "98.7%" not in two
    stacked = " ".join(shown(table, 40))
    assert "no room" not in stacked and "noise: 12.0%" in stacked


def test_a_word_longer_than_its_column_is_folded() -> None:
    digest = "0123456789abcdef" * 4
    content = TextTable("", ["", "value"], [TextRow(["digest", digest])])
    lines = shown(FittedTable(content, texts=["value"], bare=True), 40)
    assert digest in "".join(line.replace("digest", "").strip() for line in lines)
    assert not any("value" in line for line in lines)


def test_no_rows() -> None:
    assert "policy" in " ".join(shown(FittedTable(TextTable("", ["policy", "x"], [])), 40))


def test_the_widest_gives_first() -> None:
    assert narrowed([10, 30, 25], [5, 10, 25], 22) == [8, 10, 25]
    assert narrowed([10, 30], [10, 30], 0) == [10, 30]
