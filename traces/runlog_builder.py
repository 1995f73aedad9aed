"""RunLogBuilder: append passes, layers, draft steps and copies; write all or flush by parts."""

import io
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from policies.errors import UserError
from traces.atomic import Sync, write_atomically
from traces.run_info import RUN_NAME, RunInfo, RunLog, make_runlog, part_path
from traces.runlog_schema import TABLES
from traces.runlog_table import Values, table_from_columns, table_from_rows
from traces.strict_json import dump_json

Integers = Iterable[int] | NDArray[Any]
NONE = np.zeros(0, np.int64)


class RunLogBuilder:
    """Collects the rows of one run.

    With `path`, every `passes_per_flush` passes go to disk and a killed run keeps all but the rest;
    end with close(). Without it, end with write(path) or build(). List arguments are copied.
    """

    def __init__(
        self,
        info: RunInfo,
        path: str | Path | None = None,
        passes_per_flush: int = 256,
        sync: Sync = os.fsync,
    ) -> None:
        self.info = replace(info, parts=0, complete=False)
        self._passes_per_flush = passes_per_flush
        self._sync = sync
        self._rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
        self._chunks: dict[str, list[pa.Table]] = {name: [] for name in TABLES}
        self._path: Path | None = None
        if path is not None:
            self._open(Path(path))

    def add_pass(
        self,
        *,
        request: int,
        pass_index: int,
        phase: int,
        start_position: int,
        gamma: int,
        rows: int,
        accepted: int,
        committed: int,
        begin_ns: int,
        draft_end_ns: int,
        end_ns: int,
        warmup: bool = False,
    ) -> None:
        """Add a finished pass, after its layers and draft steps. May flush."""
        self._rows["passes"].append(
            (
                *(request, pass_index, phase, start_position, gamma, rows, accepted, committed),
                *(begin_ns, draft_end_ns, end_ns, warmup),
            )
        )
        if self._path is not None and len(self._rows["passes"]) >= self._passes_per_flush:
            self.flush()

    def add_layer(
        self,
        *,
        pass_index: int,
        layer: int,
        t0_ns: int,
        t1_ns: int,
        t2_ns: int,
        gpu_begin_ns: int,
        gpu_end_ns: int,
        cpu_begin_ns: int,
        cpu_end_ns: int,
        join_ns: int,
        decision_ns: int,
        view_digest: int,
        experts: Integers,
        counts: Integers,
        placement: Integers,
        hit: Integers,
        demand_expert: Integers = (),
        demand_slot: Integers = (),
        prefetch_expert: Integers = (),
        prefetch_slot: Integers = (),
        leave_prefetch_expert: Integers = (),
        leave_prefetch_slot: Integers = (),
        gpu_busy_ns: int | None = None,
        cpu_busy_ns: int | None = None,
        landed: int = 0,
        credits: int = 0,
        leave_decision_ns: int = 0,
        leave_view_digest: int = 0,
        leave_landed: int = 0,
        leave_credits: int = 0,
    ) -> None:
        """Add one (pass, layer)."""
        gpu_busy = gpu_end_ns - gpu_begin_ns if gpu_busy_ns is None else gpu_busy_ns
        cpu_busy = cpu_end_ns - cpu_begin_ns if cpu_busy_ns is None else cpu_busy_ns
        lists = (
            *(experts, counts, placement, hit, demand_expert, demand_slot),
            *(prefetch_expert, prefetch_slot, leave_prefetch_expert, leave_prefetch_slot),
        )
        self._rows["layers"].append(
            (
                *(pass_index, layer, t0_ns, t1_ns, t2_ns, gpu_begin_ns, gpu_end_ns, gpu_busy),
                *(cpu_begin_ns, cpu_end_ns, cpu_busy, join_ns, decision_ns, leave_decision_ns),
                *(view_digest, landed, credits, leave_view_digest, leave_landed, leave_credits),
                *(_copied(values) for values in lists),
            )
        )

    def add_draft(
        self,
        *,
        pass_index: int,
        step: int,
        token: int,
        t_ns: int,
        decision_ns: int,
        prefetch_expert: Integers = (),
        prefetch_slot: Integers = (),
        view_digest: int = 0,
        landed: int = 0,
        credits: int = 0,
    ) -> None:
        """Add one draft step."""
        lists = (_copied(prefetch_expert), _copied(prefetch_slot))
        self._rows["drafts"].append(
            (
                *(pass_index, step, token, t_ns, decision_ns),
                *(view_digest, landed, credits, *lists),
            )
        )

    def add_copy(
        self,
        *,
        copy_id: int,
        expert: int,
        slot: int,
        generation: int,
        kind: int,
        pass_index: int,
        layer: int,
        bytes: int,
        issue_ns: int,
        begin_ns: int,
        landing_ns: int,
    ) -> None:
        """Add a copy whose landing is known; it may follow the pass that issued it."""
        self._rows["copies"].append(
            (
                *(copy_id, expert, slot, generation, kind, pass_index, layer),
                *(bytes, issue_ns, begin_ns, landing_ns),
            )
        )

    def add_columns(self, table: str, columns: Mapping[str, Values]) -> None:
        """Add many rows of `table` at once: all its columns, a list column as (offsets, values)."""
        self._pack(table)
        self._chunks[table].append(table_from_columns(TABLES[table], columns))

    def forget_from(self, pass_index: int) -> None:
        """Drop what was added of pass `pass_index` and later ones, unless it is on disk already."""
        for name, schema in TABLES.items():
            place = schema.get_field_index("pass_index")
            self._rows[name] = [row for row in self._rows[name] if row[place] < pass_index]

    def build(self) -> RunLog:
        """The log in memory, if nothing was flushed to disk."""
        if self._path is not None:
            raise UserError("this run log goes to disk; close() it and use read_runlog")
        return make_runlog(self.info, self._tables())

    def write(self, path: str | Path) -> None:
        """Write everything as a new complete run log."""
        self._open(Path(path))
        self.close()

    def flush(self) -> None:
        """Write what was added since the last flush as one part of each table. Interrupted in any
        place it can be called again.
        """
        directory = self._directory()
        for name, table in self._tables().items():
            sink = io.BytesIO()
            pq.write_table(table, sink, compression="zstd", data_page_version="1.0")
            target = part_path(directory, name, self.info.parts)
            write_atomically(target, sink.getvalue(), self._sync)
        # Only now do the parts count: a kill before this line loses them together.
        info = replace(self.info, parts=self.info.parts + 1)
        self._write_info(directory, info)
        self.info = info
        self._rows = {name: [] for name in TABLES}
        self._chunks = {name: [] for name in TABLES}

    def close(self) -> None:
        """Write the rest and mark the run complete."""
        self.flush()
        self.info = replace(self.info, complete=True)
        self._write_info(self._directory(), self.info)

    def _open(self, path: Path) -> None:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise UserError(f"{path} exists; a run log is never overwritten, name a new one")
        for name in TABLES:
            part_path(path, name, 0).parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._write_info(path, self.info)

    def _directory(self) -> Path:
        if self._path is None:
            raise UserError("this run log has no path yet; use write(path)")
        return self._path

    def _write_info(self, directory: Path, info: RunInfo) -> None:
        write_atomically(directory / RUN_NAME, dump_json(info), self._sync)

    def _pack(self, table: str) -> None:
        if self._rows[table]:
            self._chunks[table].append(table_from_rows(TABLES[table], self._rows[table]))
            self._rows[table] = []

    def _tables(self) -> dict[str, pa.Table]:
        for name in TABLES:
            self._pack(name)
        return {
            name: pa.concat_tables([schema.empty_table(), *self._chunks[name]]).combine_chunks()
            for name, schema in TABLES.items()
        }


def _copied(values: Integers) -> NDArray[Any]:
    if isinstance(values, np.ndarray):
        return values.copy()
    return np.array(values, np.int64) if values else NONE
