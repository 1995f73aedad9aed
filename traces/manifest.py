"""manifest.json of a trace: what was recorded, from which models, and the parts that hold it.

It holds no time stamp and no path: the same recording gives the same bytes.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from policies.errors import UserError
from traces.atomic import sha256_of
from traces.strict_json import dump_json, load_json

SCHEMA_VERSION = 1
MANIFEST_NAME = "manifest.json"
MAX_LOOKAHEAD = 3
LARGEST = 2**31 - 1
NEXT_LAYER_COLUMNS = tuple(f"next_layer_{h}" for h in range(1, MAX_LOOKAHEAD + 1))
OPTIONAL_COLUMNS = ("router_weights", *NEXT_LAYER_COLUMNS)

Kind = Literal["dense", "windowed", "text"]
SamplingMode = Literal["greedy", "keyed", "rejection", "none"]

_PART_NAME = re.compile(r"part-\d{5}\.parquet")


@dataclass(frozen=True)
class ModelInfo:
    """Shape of the target as a policy sees it; `layers` counts routed layers only."""

    name: str
    layers: int
    experts: int
    top_k: int
    expert_bytes: int

    def __post_init__(self) -> None:
        for key in ("layers", "experts", "top_k", "expert_bytes"):
            if getattr(self, key) < 1:
                raise UserError(f"model {self.name!r}: {key} is {getattr(self, key)}, must be >= 1")
        # Experts are numbered over all layers in int32, and so are the choices of a row.
        numbers = self.layers * max(self.experts, self.top_k)
        if numbers > LARGEST or self.expert_bytes > LARGEST**2:
            raise UserError(
                f"model {self.name!r}: {self.layers} layers x {self.experts} experts, top-"
                f"{self.top_k}, of {self.expert_bytes} bytes: more than a trace can number"
            )
        if self.top_k > self.experts:
            raise UserError(f"model {self.name!r}: top_k {self.top_k} > experts {self.experts}")
        if self.experts > 0xFFFF:
            raise UserError(f"model {self.name!r}: {self.experts} experts, at most 65535 fit")


@dataclass(frozen=True)
class SamplingInfo:
    """How the text was sampled; "none" where the text was given and not sampled."""

    mode: SamplingMode
    temperature: float
    seed: int


@dataclass(frozen=True)
class PartInfo:
    """One part file: its name inside the trace, number of rows, SHA-256 of its bytes."""

    file: str
    rows: int
    sha256: str

    def __post_init__(self) -> None:
        if not _PART_NAME.fullmatch(self.file):
            raise UserError(f"part name {self.file!r} is not of the form part-00000.parquet")


@dataclass(frozen=True)
class Manifest:
    """Everything about a trace but its rows.

    `gamma_max`: largest gamma that a dense trace can replay, the own gamma of a windowed one, 0 for
    text.
    `columns`: the optional columns present, in the order of OPTIONAL_COLUMNS.
    `complete` is false while recording and after a kill.
    """

    schema_version: int
    kind: Kind
    workload: str
    model: ModelInfo
    draft: str | None
    sampling: SamplingInfo
    gamma_max: int
    recorder: str
    columns: tuple[str, ...] = ()
    parts: tuple[PartInfo, ...] = ()
    complete: bool = False
    notes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.schema_version != SCHEMA_VERSION:
            raise UserError(
                f"manifest: schema_version {self.schema_version}, this program reads "
                f"{SCHEMA_VERSION}; "
                "record the trace again or use the matching version of the program"
            )
        if self.gamma_max < 0 or (self.kind == "text" and self.gamma_max != 0):
            raise UserError(f"manifest: gamma_max {self.gamma_max} is not possible for {self.kind}")
        if self.columns != tuple(name for name in OPTIONAL_COLUMNS if name in self.columns):
            known = ", ".join(OPTIONAL_COLUMNS)
            raise UserError(
                f"manifest: columns {list(self.columns)} must be some of, in order: {known}"
            )
        lookahead = [name for name in self.columns if name in NEXT_LAYER_COLUMNS]
        if tuple(lookahead) != NEXT_LAYER_COLUMNS[: len(lookahead)]:
            raise UserError(f"manifest: columns {lookahead} leave a gap; next_layer starts at 1")

    @property
    def lookahead(self) -> int:
        """H: the number of next_layer columns."""
        return sum(name in NEXT_LAYER_COLUMNS for name in self.columns)

    @property
    def rows_per_start(self) -> int:
        """Rows recorded for one start in the decode phase."""
        return self.gamma_max + 1

    def digest(self) -> str:
        """Identity of the trace: SHA-256 of the manifest, which holds the SHA-256 of every part."""
        return sha256_of(dump_json(self))


def read_manifest(directory: Path) -> Manifest:
    """The manifest of the trace in `directory`; UserError if it is none."""
    if not directory.is_dir():
        raise UserError(f"{directory}: no such trace directory")
    path = directory / MANIFEST_NAME
    if not path.is_file():
        kind = "a run log" if (directory / "run.json").is_file() else "not a trace"
        raise UserError(f"{directory}: {kind}, it has no {MANIFEST_NAME}; give a trace directory")
    return load_json(Manifest, path)
