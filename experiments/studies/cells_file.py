"""The file of cells: which traces, cache ratios, windows and policies `study cells` plays."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.commands import options
from experiments.key_kinds import as_written
from experiments.unknown import unknown
from experiments.values import number, whole_number
from experiments.yaml_file import read_yaml
from policies.errors import UserError

CELLS_FILE = Path(__file__).with_name("cells.yaml")
KEYS = (
    "cache_ratios", "windows", "policies", "tuned", "short_gammas", "no_draft", "nulls", "traces",
)  # fmt: skip
TRACE_KEYS = ("trace", "file", "model", "draft", "acceptance", "requests")


@dataclass(frozen=True)
class CellTrace:
    """A trace of the cells: `trace` by name or path, or a routing `file` in the data folder."""

    trace: str | None
    file: str | None
    model: str
    draft: str
    requests: int
    acceptance: float | None = None


@dataclass(frozen=True)
class CellsFile:
    """See cells.yaml for what the entries mean. `policies` None: the whole zoo."""

    cache_ratios: tuple[float, ...]
    windows: tuple[int, ...]
    policies: tuple[str, ...] | None
    tuned: tuple[str, ...]
    short_gammas: tuple[int, ...]
    no_draft: tuple[str, ...]
    nulls: tuple[str, ...]
    traces: tuple[CellTrace, ...]


def read_cells(path: Path) -> CellsFile:
    """Parse and check; UserError names the entry."""
    content = read_yaml(path, f"cells={path}", f"{CELLS_FILE.name} in the sources is one")
    if not isinstance(content, dict) or set(content) != set(KEYS):
        raise UserError(f"cells={path}: needs exactly the keys {', '.join(KEYS)}")
    for key, value in content.items():
        if not isinstance(value, list) and not (key == "policies" and value is None):
            raise UserError(f"cells={path}: {key}={as_written(value)}: must be a list")
    named = {
        key: tuple(_policy(key, name) for name in content[key])
        for key in ("tuned", "no_draft", "nulls")
    }
    chosen = content["policies"]
    windows = tuple(whole_number("windows", value) for value in content["windows"])
    if not windows or min(windows) < 1 or not content["traces"] or not content["cache_ratios"]:
        raise UserError(f"cells={path}: needs traces, cache ratios and windows of at least 1 row")
    return CellsFile(
        cache_ratios=tuple(number("cache_ratios", value) for value in content["cache_ratios"]),
        windows=windows,
        policies=None if chosen is None else tuple(_policy("policies", name) for name in chosen),
        short_gammas=tuple(whole_number("short_gammas", one) for one in content["short_gammas"]),
        traces=tuple(_trace(path, entry) for entry in content["traces"]),
        **named,
    )


def _policy(key: str, name: Any) -> str:
    if str(name) not in options("policy"):
        raise unknown(f"policy in {key}", str(name), options("policy"))
    return str(name)


def _text(entry: Mapping[str, Any], key: str) -> str | None:
    return str(entry[key]) if key in entry else None


def _trace(path: Path, entry: Any) -> CellTrace:
    if not isinstance(entry, Mapping):
        raise UserError(f"cells={path}: {as_written(entry)}: a trace needs keys with values")
    foreign = set(entry) - set(TRACE_KEYS)
    if foreign or not {"model", "draft", "requests"} <= set(entry):
        raise UserError(
            f"cells={path}: a trace needs model, draft, requests, and trace or file; found "
            f"{', '.join(map(str, entry))}"
        )
    if ("trace" in entry) == ("file" in entry):
        raise UserError(f"cells={path}: give each trace either trace or file: {dict(entry)}")
    for group in ("model", "draft"):
        if str(entry[group]) not in options(group):
            raise unknown(group, str(entry[group]), options(group))
    requests = whole_number("requests", entry["requests"])
    if requests < 2:
        raise UserError(f"cells={path}: requests={requests}, need 2: the first is warm-up")
    accepted = entry.get("acceptance")
    return CellTrace(
        _text(entry, "trace"), _text(entry, "file"), str(entry["model"]), str(entry["draft"]),
        requests,
        None if accepted is None else number("acceptance", accepted),
    )  # fmt: skip
