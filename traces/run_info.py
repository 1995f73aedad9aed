"""RunInfo, the description of a run, and RunLog, a whole run in memory."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa

from policies.errors import UserError
from traces.manifest import ModelInfo
from traces.runlog_frame import frame_from_table
from traces.runlog_schema import TABLES

RUNLOG_VERSION = 1
RUN_NAME = "run.json"
LARGEST_COUNT = 2**31 - 1


@dataclass(frozen=True)
class RunInfo:
    """run.json. `model` is the model whose sizes and costs were used, maybe not the recorded one.

    `trace`, `trace_digest`: name and Manifest.digest() of the trace, "" where a prompt was given;
    `decision_source`: where decision times come from; `approximate`: from a text trace;
    `parts` and `complete` are set by the builder.
    """

    kind: Literal["simulated", "measured"]
    policy: str
    policy_params: dict[str, Any]
    model: ModelInfo
    slots: int
    staging: int
    hardware: str
    engine: str
    trace: str
    trace_digest: str
    expert_bytes: int
    decision_source: str
    approximate: bool
    notes: dict[str, str] = field(default_factory=dict)
    parts: int = 0
    complete: bool = False
    schema_version: int = RUNLOG_VERSION

    def __post_init__(self) -> None:
        if self.schema_version != RUNLOG_VERSION:
            raise UserError(
                f"run log: schema_version {self.schema_version}, this program reads "
                f"{RUNLOG_VERSION}; run it again or use the matching version of the program"
            )
        for name in ("slots", "staging", "parts"):
            if not 0 <= getattr(self, name) <= LARGEST_COUNT:
                raise UserError(
                    f"run log: {name} is {getattr(self, name)}, must be 0 to {LARGEST_COUNT}; "
                    "the file is damaged or foreign"
                )


@dataclass(frozen=True)
class RunLog:
    """A run: its description and four tables with the columns of runlog_schema."""

    info: RunInfo
    passes: pd.DataFrame
    layers: pd.DataFrame
    drafts: pd.DataFrame
    copies: pd.DataFrame


def make_runlog(info: RunInfo, tables: dict[str, pa.Table]) -> RunLog:
    """A RunLog from Arrow tables with the schemas of TABLES."""
    return RunLog(info, **{name: frame_from_table(tables[name]) for name in TABLES})


def part_path(directory: Path, table: str, index: int) -> Path:
    """File of part `index` of `table`."""
    return directory / f"{table}.parquet" / f"part-{index:05d}.parquet"
