"""Rows of one request at a time, with only one part of the trace in memory."""

import numpy as np

from policies.errors import UserError
from traces.layout import layout_problems, request_bounds
from traces.reader import Trace, read_part_bytes
from traces.rows import PREFILL, RowBatch
from traces.schema import read_table


class RequestRows:
    """Looks requests up by number. Only the last part read stays in memory: go in order."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._part_of: dict[int, int] = {}
        self._prefill: dict[int, int] = {}
        self._held = -1
        self._rows: dict[int, RowBatch] = {}
        for index, part in enumerate(trace.manifest.parts):
            data, where = read_part_bytes(trace.path, part), str(trace.path / part.file)
            # Two narrow columns tell which requests are in the part; expert columns stay packed.
            table = read_table(data, where, ["request", "phase"])
            numbers = table.column("request").to_numpy()
            prefill = numbers[table.column("phase").to_numpy() == PREFILL]
            found, counts = np.unique(prefill, return_counts=True)
            self._prefill.update(zip(found.tolist(), counts.tolist(), strict=True))
            for request in np.unique(numbers).tolist():
                if request in self._part_of:
                    raise UserError(
                        f"{trace.path}: request {request} is in parts {self._part_of[request]} and "
                        f"{index}; a part must hold whole requests"
                    )
                self._part_of[request] = index

    @property
    def ids(self) -> tuple[int, ...]:
        """All request numbers, ascending."""
        return tuple(sorted(self._part_of))

    def prefill_rows(self, request: int) -> int:
        """How many rows of `request` are prefill; no part is read for it."""
        return self._prefill.get(request, 0)

    def rows(self, request: int) -> RowBatch:
        """All rows of `request`, its layout checked once per part read."""
        if request not in self._part_of:
            raise UserError(
                f"{self.trace.path}: no request {request}; it has {len(self._part_of)} requests"
            )
        index = self._part_of[request]
        if index != self._held:
            batch = self.trace.read_part(index)
            problems = layout_problems(batch, self.trace.manifest)
            if problems:
                file = self.trace.manifest.parts[index].file
                raise UserError(f"{self.trace.path / file}: {problems[0]}")
            self._rows = {
                number: batch.span(begin, end)
                for number, begin, end in request_bounds(batch.request)
            }
            self._held = index
        return self._rows[request]

    def split(self, request: int) -> tuple[RowBatch, RowBatch]:
        """(prefill rows, decode rows) of `request`."""
        rows, prefill = self.rows(request), self.prefill_rows(request)
        return rows.span(0, prefill), rows.span(prefill, len(rows))
