"""Pictures inside a page: their data as a URI, and words for who cannot see them."""

import base64
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from experiments.figure_style import figure_bytes
from policies.errors import UserError

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
LARGEST = 8_000_000  # bytes of a picture that is taken into a page


@dataclass(frozen=True)
class Picture:
    """`source`: a data URI; `title`: its finding; `caption`: how to read it."""

    name: str
    source: str
    title: str
    caption: str

    @property
    def alt(self) -> str:
        """For who cannot see it."""
        return f"{self.title}. {self.caption}"


def drawn_picture(name: str, figure: Figure, caption: str) -> Picture:
    """A figure as SVG. Its title is taken out and becomes text of the page, which wraps on a
    narrow screen and can be heard."""
    shown = figure.get_suptitle()
    figure.suptitle("")
    source = _uri("image/svg+xml", figure_bytes(figure, "svg"))
    figure.suptitle(shown)
    return Picture(name, source, " ".join(shown.split()), caption)


def png_picture(path: Path, title: str, caption: str) -> Picture:
    """A PNG file; UserError if it is none or too large for a page."""
    size = path.stat().st_size
    if size > LARGEST:
        raise UserError(f"{path}: {size:,} bytes, a picture in a page has at most {LARGEST:,}")
    data = path.read_bytes()
    if not data.startswith(PNG_SIGNATURE):
        raise UserError(f"{path}: not a PNG picture")
    return Picture(path.stem, _uri("image/png", data), title, caption)


def _uri(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
