"""Hardware profiles in files of the user's: `hardware=PATH`, as `spac calibrate` writes them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from experiments.yaml_file import read_yaml
from policies.errors import UserError
from simulator.hardware import hardware_profile
from traces.atomic import write_atomically

PROFILE_NAME = "hardware.yaml"
KEY = "hardware="


def take_profile(words: Sequence[str]) -> tuple[Path | None, list[str]]:
    """(path of a profile if `hardware=` names one, the other words). A path has a slash or ends in
    .yaml; anything else is a name of conf/hardware.
    """
    chosen, rest = None, []
    for word in words:
        value = word.removeprefix(KEY)
        if word.startswith(KEY) and ("/" in value or value.endswith(".yaml")):
            chosen = Path(value).expanduser()
        else:
            rest.append(word)
    changed = next((word for word in rest if word.lstrip("+").startswith("hardware.")), None)
    if chosen is not None and changed is not None:
        raise UserError(f"{changed} beside {KEY}{chosen}: change the number in the file")
    return chosen, rest


def read_hardware(path: Path) -> dict[str, Any]:
    """The profile as plain data, checked; UserError names the file and the key that is wrong.
    `path` may be the output folder of a calibration.
    """
    if path.is_dir():
        path = path / PROFILE_NAME
    content = read_yaml(path, f"hardware={path}", "spac calibrate writes such a file")
    if not isinstance(content, dict):
        raise UserError(f"hardware={path}: expected keys with values, as in conf/hardware")
    hardware_profile(content, f"{KEY}{path}")
    return content


def write_hardware(folder: Path, values: Mapping[str, Any], about: Sequence[str]) -> Path:
    """Write a profile, with comment lines above it; returns its path."""
    path = folder / PROFILE_NAME
    text = "".join(f"# {line}\n" for line in about)
    text += yaml.safe_dump(dict(values), sort_keys=False, default_flow_style=None, width=110)
    write_atomically(path, text.encode())
    return path
