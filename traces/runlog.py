"""Run logs: what was decided and when, on disk. Import RunLog, RunInfo and RunLogBuilder from here.

The directory has run.json and passes.parquet, layers.parquet, drafts.parquet, copies.parquet, each
a folder of parts (pandas.read_parquet opens it). run.json says how many parts are whole.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from policies.errors import UserError
from traces.run_info import RUN_NAME, RUNLOG_VERSION, RunInfo, RunLog, make_runlog, part_path
from traces.runlog_builder import RunLogBuilder
from traces.runlog_schema import TABLES
from traces.strict_json import load_json

__all__ = ["RunInfo", "RunLog", "RunLogBuilder", "read_runlog"]


def read_runlog(path: str | Path) -> RunLog:
    """The run log in directory `path`: all whole parts, also of a run that was killed."""
    directory = Path(path)
    if not (directory / RUN_NAME).is_file():
        raise UserError(f"{directory}: not a run log, it has no {RUN_NAME}; give a run directory")
    info = load_json(RunInfo, directory / RUN_NAME)
    return make_runlog(
        info,
        {
            name: pa.concat_tables(
                [schema.empty_table()]
                + [_read_part(part_path(directory, name, i), schema) for i in range(info.parts)]
            )
            for name, schema in TABLES.items()
        },
    )


def _read_part(path: Path, schema: pa.Schema) -> pa.Table:
    try:
        table = pq.read_table(
            pa.BufferReader(path.read_bytes()), use_threads=False, pre_buffer=False
        )
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: cannot read this part of the run log ({reason})") from error
    if table.schema.names != schema.names:
        raise UserError(
            f"{path}: columns {table.schema.names} do not fit version {RUNLOG_VERSION} of run logs"
        )
    return table.cast(schema)
