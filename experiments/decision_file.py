"""Decision times: the file of measured times of policies, and which time a run charges.

A file is written by `spac bench` and read by the key decision=. Both engines charge its medians
instead of what the hardware profile assumes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from experiments.commands import CONF, options
from experiments.unknown import unknown
from experiments.yaml_file import read_yaml
from policies.errors import UserError
from simulator.hardware import DecisionTimes
from simulator.profiles import check_numbers, number, read_profile

GROUP = "decision"


@dataclass(frozen=True)
class PolicyTimes:
    """Host time of one decision in ns, median and 99th percentile: at a layer's start, at its end,
    after a draft step."""

    layer_ns: int = number(0)
    layer_p99_ns: int = number(0)
    leave_ns: int = number(0)
    leave_p99_ns: int = number(0)
    draft_ns: int = number(0)
    draft_p99_ns: int = number(0)

    def __post_init__(self) -> None:
        check_numbers(self)

    def charged(self) -> DecisionTimes:
        """The medians, as engines charge them."""
        return DecisionTimes(self.layer_ns, self.leave_ns, self.draft_ns)


@dataclass(frozen=True)
class DecisionFile:
    """`load_average`: how busy the machine was meanwhile; `versions`: package -> version; `shape`:
    sizes that were decided about, whatever sizes the times are charged for later; `decisions`:
    layers measured for each policy; `policies`: name -> times."""

    name: str
    cpu: str
    cores: int
    load_average: float
    versions: dict[str, str]
    source_hash: str
    shape: dict[str, int]
    decisions: int
    policies: dict[str, PolicyTimes]

    def of(self, policy: str) -> DecisionTimes:
        """What to charge for a policy; UserError if the file lacks it."""
        if policy not in self.policies:
            raise UserError(
                f"decision={self.name}: it has no times of policy {policy}; measure them with "
                f"spac bench only=[decisions] policy=[{policy}], or leave decision= out to charge "
                "what the hardware profile assumes"
            )
        return self.policies[policy].charged()


def times_of(policy: str, decision: DecisionFile | None) -> DecisionTimes | None:
    """What a cost table charges for `policy`; None: what its hardware profile assumes."""
    return None if decision is None else decision.of(policy)


def source_of(hardware: str, decision: DecisionFile | None) -> str:
    """Where charged times come from, for tables and run logs."""
    if decision is None:
        return f"assumed by hardware profile {hardware}"
    return f"measured on {decision.name}"


def choose_decision(value: object) -> DecisionFile | None:
    """The file that the key decision= names, by name in conf/decision or by path; None for
    null."""
    if value is None:
        return None
    name = str(value)
    if name in options(GROUP):
        return read_decision_file(CONF / GROUP / f"{name}.yaml")
    path = Path(name).expanduser()
    if path.is_file():
        return read_decision_file(path)
    if path.suffix or "/" in name:
        raise UserError(f"decision={name}: no such file")
    raise unknown("decision file", name, options(GROUP))


def read_decision_file(path: Path) -> DecisionFile:
    """UserError names file and key if it is damaged or foreign."""
    content = read_yaml(path, str(path), "spac bench writes such a file")
    if not isinstance(content, Mapping):
        raise UserError(f"{path}: not a file of decision times; spac bench writes them")
    return read_profile(DecisionFile, dict(content), str(path))


def as_yaml(times: DecisionFile) -> str:
    """The text of a decision file; policies in the order of their names."""
    record: dict[str, Any] = {key: getattr(times, key) for key in times.__dataclass_fields__}
    record["policies"] = {name: vars(times.policies[name]) for name in sorted(times.policies)}
    return yaml.safe_dump(record, sort_keys=False, allow_unicode=True)
