"""Open a trace and read it part by part; every damage is a UserError that names the file."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from policies.errors import UserError
from traces.atomic import sha256_of
from traces.layout import value_problems
from traces.manifest import Manifest, PartInfo, read_manifest
from traces.rows import RowBatch, build_rows, concatenate_rows
from traces.schema import decode_part


@dataclass(frozen=True)
class Trace:
    """A trace on disk. Parts hold whole requests; only load() has more than one in memory."""

    path: Path
    manifest: Manifest

    @property
    def digest(self) -> str:
        """Identity of the contents, as logs keep it."""
        return self.manifest.digest()

    def read_part(self, index: int) -> RowBatch:
        """Rows of part `index`, checked against the manifest (bytes, row count, expert numbers)."""
        part = self.manifest.parts[index]
        data = read_part_bytes(self.path, part)
        where = str(self.path / part.file)
        batch = decode_part(data, self.manifest, where)
        if len(batch) != part.rows:
            raise UserError(f"{where}: {len(batch)} rows, the manifest says {part.rows}")
        problems = value_problems(batch, self.manifest)
        if problems:
            raise UserError(f"{where}: {problems[0]}")
        return batch

    def iter_parts(self) -> Iterator[RowBatch]:
        """The parts in order, one in memory at a time."""
        for index in range(len(self.manifest.parts)):
            yield self.read_part(index)

    def load(self) -> RowBatch:
        """All rows."""
        batches = list(self.iter_parts())
        return concatenate_rows(batches) if batches else _no_rows(self.manifest)


def open_trace(path: str | Path, verify: bool = False) -> Trace:
    """The trace in directory `path`. A hash is checked when its part is read; `verify`: all now."""
    directory = Path(path)
    trace = Trace(directory, read_manifest(directory))
    for part in trace.manifest.parts:
        if verify:
            read_part_bytes(directory, part)
        elif not (directory / part.file).is_file():
            raise _missing(directory / part.file)
    return trace


def read_part_bytes(directory: Path, part: PartInfo) -> bytes:
    """Bytes of a part file; UserError unless they have the SHA-256 of the manifest."""
    path = directory / part.file
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise _missing(path) from error
    found = sha256_of(data)
    if found != part.sha256:
        raise UserError(
            f"{path}: SHA-256 {found[:12]}.. of {len(data)} bytes, the manifest says "
            f"{part.sha256[:12]}..; the part is truncated or changed, copy it again"
        )
    return data


def _missing(path: Path) -> UserError:
    return UserError(f"{path}: the part is missing; copy the whole trace again")


def _no_rows(manifest: Manifest) -> RowBatch:
    lookahead = manifest.lookahead
    cells = (0, manifest.model.layers, manifest.model.top_k)
    return build_rows(
        request=0,
        phase=0,
        start=0,
        row=0,
        input_token=0,
        target_choice=0,
        match=False,
        experts=np.zeros(cells, np.uint16),
        router_weights=np.zeros(cells) if "router_weights" in manifest.columns else None,
        next_layer=np.zeros((lookahead, *cells), np.uint16) if lookahead else None,
    )
