"""A report as data, and as the one HTML file that is made of it."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from experiments.report_page.picture import Picture
from experiments.report_page.validation_part import ClockPart
from experiments.text_table import TextTable

FOLDER = Path(__file__).resolve().parent
TEMPLATE, STYLE = "page.html.j2", "style.css"


@dataclass(frozen=True)
class Page:
    """Everything the page says. `findings`: sentences, the first of them the outcome; `warnings`:
    what limits them; `figures`: (label, value) of the few numbers that matter most; `ranking`: at
    the setting where the winner is fastest; `validation`: None where there is none."""

    title: str
    findings: Sequence[str]
    warnings: Sequence[str]
    figures: Sequence[tuple[str, str]]
    ranking: Sequence[TextTable]
    other_settings: Sequence[TextTable]
    ranking_note: str
    speed_pictures: Sequence[Picture]
    sweep_pictures: Sequence[Picture]
    layer_pictures: Sequence[Picture]
    copy_pictures: Sequence[Picture]
    breakdown: TextTable
    breakdown_note: str
    missing: Sequence[str]
    winners: Sequence[TextTable]
    winner_files: Sequence[str]
    validation: Sequence[ClockPart] | None
    validation_source: str
    settings: Sequence[TextTable]
    inputs: TextTable
    versions: TextTable


def render(page: Page) -> str:
    """The page as HTML. All text is escaped; the browser is told to load nothing and run nothing
    but the styles whose hash is named."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = (FOLDER / STYLE).read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    template = environment.get_template(TEMPLATE)
    return template.render(page=page, style=style, style_hash=f"sha256-{digest}")
