"""Markdown paragraphs and tables of the model card."""

from __future__ import annotations

from textwrap import fill

WIDTH = 98


def wrapped(block: str) -> str:
    """Refill paragraphs and list items after the numbers went in; leave tables and code alone."""
    parts = []
    for part in block.split("\n\n"):
        if part.startswith(("#", "|", "```")):
            parts.append(part)
        elif part.startswith("- "):
            items = [" ".join(item.split()) for item in part[2:].split("\n- ")]
            filled = [fill("- " + item, WIDTH, subsequent_indent="  ") for item in items]
            parts.append("\n".join(filled))
        else:
            parts.append(fill(" ".join(part.split()), WIDTH))
    return "\n\n".join(parts)


def table(heading: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
