"""Importers of foreign routing files: an explicit table, one file per format."""

from collections.abc import Callable
from pathlib import Path

from policies.errors import UserError
from traces.importers.npz_routing import import_npz
from traces.reader import Trace

Importer = Callable[[Path, Path, int | None], Trace]

IMPORTERS: dict[str, Importer] = {"npz": import_npz}


def import_trace(
    source: str | Path,
    destination: str | Path,
    format: str = "auto",
    expert_bytes: int | None = None,
) -> Trace:
    """Import `source` into the new trace directory `destination`; "auto" goes by its suffix."""
    source = Path(source)
    name = source.suffix.removeprefix(".") if format == "auto" else format
    if name not in IMPORTERS:
        raise UserError(
            f"{source}: no importer for {name!r}; known formats: {', '.join(sorted(IMPORTERS))}"
        )
    return IMPORTERS[name](source, Path(destination), expert_bytes)
