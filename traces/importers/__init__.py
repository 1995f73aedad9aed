"""Importers of foreign routing files: an explicit table, one file per format.

An importer reads a file into a `Routing` and decides nothing else; model, manifest and trace are
made here, the same way for all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from policies.errors import UserError
from traces.importers.fingerprint import read_fingerprint, recognises_fingerprint
from traces.importers.npz_routing import read_npz, recognises_npz
from traces.importers.plain_table import (
    read_csv,
    read_json_lines,
    recognises_csv,
    recognises_json_lines,
)
from traces.importers.policylang import read_policylang, recognises_policylang
from traces.importers.routing import Given, Routing, manifest_of, rows_of
from traces.importers.sglang import read_sglang, recognises_sglang
from traces.importers.vllm import read_vllm, recognises_vllm
from traces.layout import layout_problems, value_problems
from traces.reader import Trace, open_trace
from traces.writer import TraceWriter


def only_by_name(source: Path) -> bool:
    """For a format that files must be said to have."""
    return False


@dataclass(frozen=True)
class Importer:
    """`read`: the routing of a file; OSError, ValueError and KeyError become refusals of it.
    `recognises`: whether a file looks like this format, from its first bytes; never raises."""

    read: Callable[[Path], Routing]
    recognises: Callable[[Path], bool] = only_by_name


IMPORTERS: Mapping[str, Importer] = {
    "csv": Importer(read_csv, recognises_csv),
    "gpt-oss-fingerprint": Importer(read_fingerprint, recognises_fingerprint),
    "jsonl": Importer(read_json_lines, recognises_json_lines),
    "moe-policylang": Importer(read_policylang, recognises_policylang),
    "npz": Importer(read_npz, recognises_npz),
    "sglang": Importer(read_sglang, recognises_sglang),
    "vllm": Importer(read_vllm, recognises_vllm),
}


def import_trace(
    source: str | Path,
    destination: str | Path,
    format: str = "auto",
    given: Given = Given(),  # noqa: B008
    importers: Mapping[str, Importer] = IMPORTERS,
) -> Trace:
    """Import `source` into the new trace directory `destination`.

    "auto" takes the one format that recognises the file; UserError if none or several do.
    """
    source = Path(source)
    name = recognised(source, importers) if format == "auto" else format
    if name not in importers:
        raise UserError(
            f"{source}: no importer for {name!r}; known formats: {', '.join(sorted(importers))}"
        )
    if not source.is_file():
        raise UserError(f"{source}: no such file")
    routing = _read(importers[name], source, name)
    rows = rows_of(routing, source)
    manifest = manifest_of(routing, source, name, given)
    # Checked before anything is written, so that a refusal leaves no half-made trace behind.
    problems = [*value_problems(rows, manifest), *layout_problems(rows, manifest)]
    if problems:
        raise UserError(f"{source}: {problems[0]}")
    with TraceWriter(destination, manifest) as writer:
        writer.append(rows)
    return open_trace(destination)


def _read(importer: Importer, source: Path, name: str) -> Routing:
    try:
        routing = importer.read(source)
    except KeyError as error:
        raise UserError(f"{source}: no {error} in this {name} file") from error
    except (OSError, ValueError) as error:
        said = " ".join(str(error).split())  # pandas says some things in several lines
        raise UserError(f"{source}: not a readable {name} file ({said})") from error
    if not isinstance(routing, Routing):
        raise UserError(f"format {name}: it returned {type(routing).__name__}, expected a Routing")
    return routing


def recognised(source: Path, importers: Mapping[str, Importer] = IMPORTERS) -> str:
    """The name of the one format that recognises `source`."""
    if not source.is_file():
        raise UserError(f"{source}: no such file")
    names = sorted(name for name, one in importers.items() if one.recognises(source))
    if len(names) > 1:
        raise UserError(f"{source}: could be {' or '.join(names)}; say which with format=")
    if not names:
        known = ", ".join(sorted(importers))
        raise UserError(
            f"{source}: not recognised as any known format; say which with format=, known formats: "
            f"{known}"
        )
    return names[0]
