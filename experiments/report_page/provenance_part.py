"""What was run, from run.json and winner.yaml: settings, inputs, versions, as tables of text."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.text_table import TextRow, TextTable
from experiments.winner import Winner

GROUPS = ("hardware", "model", "draft")  # profiles: each has a table of its own
WINNER_KEYS = ("policy", "parameters", "gamma", "cache_ratio", "model", "hardware")


def settings_tables(record: Mapping[str, Any]) -> list[TextTable]:
    """The keys of the command, then each profile that it used, nested keys joined by dots."""
    config = record["config"]
    own = {key: value for key, value in config.items() if key not in GROUPS}
    tables = [_table(f"keys of spac {record['command']}", "key", "value", own)]
    for group in GROUPS:
        if isinstance(config.get(group), Mapping):
            name = config[group].get("name", "")
            tables.append(_table(f"{group}: {name}", "key", "value", config[group]))
    return tables


def inputs_table(record: Mapping[str, Any]) -> TextTable:
    """Trace or file by name, not by the place where it lay, with its digest."""
    rows = [TextRow([Path(name).name, digest]) for name, digest in record["inputs"].items()]
    return TextTable("inputs", ("trace or file", "SHA-256"), rows)


def versions_table(record: Mapping[str, Any]) -> TextTable:
    """The program and what it stands on."""
    versions = {
        "hash of the decision code": record["source_hash"],
        "Python": f"{record['python']}, {record['machine']}",
        **record["versions"],
    }
    return _table("versions", "what", "version", versions)


def winner_table(winner: Winner) -> TextTable:
    """The settings with which `spac run` would run it."""
    content = {key: value for key, value in asdict(winner).items() if key in WINNER_KEYS}
    drafts = f"gamma {winner.gamma}" if winner.gamma else "no draft"
    return _table(f"{winner.policy}, {drafts}", "key", "value", content)


def _table(title: str, key: str, value: str, content: Mapping[str, Any]) -> TextTable:
    rows = [TextRow([name, shown]) for name, shown in _flat("", content)]
    return TextTable(title, (key, value), rows)


def _flat(prefix: str, content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}", _text(value)


def _text(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(_text(one) for one in value)
    return str(value)
