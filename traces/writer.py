"""TraceWriter: append rows, get a trace that is readable after a kill at any moment.

A part holds whole requests, so what a killed writer leaves is a shorter trace without broken
windows.
At most the rows since the last part are lost; the manifest says complete=false.
"""

import os
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from policies.errors import UserError
from traces.atomic import Sync, sha256_of, write_atomically
from traces.layout import layout_problems, value_problems
from traces.manifest import MANIFEST_NAME, Manifest, PartInfo
from traces.rows import RowBatch, concatenate_rows
from traces.schema import encode_part
from traces.strict_json import dump_json

DEFAULT_ROWS_PER_PART = 16_384


class TraceWriter:
    """Context manager that writes one new trace directory.

    A part is written when a request ends and at least `rows_per_part` rows wait. Leaving the
    context normally completes the trace; leaving it by an exception writes the whole requests seen
    so far and leaves the trace incomplete.
    """

    def __init__(
        self,
        path: str | Path,
        manifest: Manifest,
        rows_per_part: int = DEFAULT_ROWS_PER_PART,
        sync: Sync = os.fsync,
    ) -> None:
        if rows_per_part < 1:
            raise UserError(f"rows_per_part is {rows_per_part}, must be >= 1")
        self.path = Path(path)
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise UserError(
                f"{self.path} exists already; a trace is never overwritten, name a new one"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        self.manifest = replace(manifest, parts=(), complete=False)
        self._rows_per_part = rows_per_part
        self._sync = sync
        self._waiting: list[RowBatch] = []
        self._last_request = -1
        self._closed = False
        self._write_manifest()

    def append(self, batch: RowBatch) -> None:
        """Add rows. A request may come in several batches; requests ascend, none is resumed."""
        if self._closed:
            raise UserError(f"{self.path}: the trace is closed, no rows can be added")
        if len(batch) == 0:
            return
        problems = value_problems(batch, self.manifest)
        if problems:
            raise UserError(f"{self.path}: {problems[0]}")
        if batch.request[0] < self._last_request:
            raise UserError(
                f"{self.path}: request {batch.request[0]} after request {self._last_request}; "
                "request numbers must ascend"
            )
        self._last_request = int(batch.request[-1])
        self._waiting.append(batch)
        if sum(map(len, self._waiting)) >= self._rows_per_part:
            self._write_part(keep_last_request=True)

    def close(self) -> None:
        """Write what waits and mark the trace complete."""
        if self._closed:
            return
        self._write_part(keep_last_request=False)
        self.manifest = replace(self.manifest, complete=True)
        self._write_manifest()
        self._closed = True

    def __enter__(self) -> "TraceWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        elif not self._closed:
            self._closed = True
            # A UserError about the rows themselves must not be hidden by a second one from here.
            if not isinstance(error, UserError):
                self._write_part(keep_last_request=True)

    def _write_part(self, keep_last_request: bool) -> None:
        if not self._waiting:
            return
        batch = concatenate_rows(self._waiting)
        end = len(batch)
        if keep_last_request:
            end = int((batch.request != batch.request[-1]).sum())
        if end == 0:
            self._waiting = [batch]
            return
        whole = batch.span(0, end)
        problems = layout_problems(whole, self.manifest)
        if problems:
            raise UserError(f"{self.path}: {problems[0]}")
        data = encode_part(whole, self.manifest)
        name = f"part-{len(self.manifest.parts):05d}.parquet"
        write_atomically(self.path / name, data, self._sync)
        part = PartInfo(name, end, sha256_of(data))
        self.manifest = replace(self.manifest, parts=(*self.manifest.parts, part))
        self._write_manifest()
        self._waiting = [batch.span(end, len(batch))] if end < len(batch) else []

    def _write_manifest(self) -> None:
        write_atomically(self.path / MANIFEST_NAME, dump_json(self.manifest), self._sync)
