"""run.json of an output folder: what was asked, which inputs, which code and package versions."""

import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from policies.errors import UserError
from policies.sources import source_hash
from traces.atomic import write_atomically
from traces.strict_json import read_object

PACKAGES = (
    "moe-spac-lab", "numpy", "scipy", "pandas", "pyarrow", "numba", "simpy", "torch",
    "transformers", "safetensors", "hydra-core", "matplotlib",
)  # fmt: skip
RUN_FILE = "run.json"
RECORDED = {"command", "config", "inputs", "source_hash", "python", "machine", "versions"}


def write_run_file(
    folder: Path,
    command: str,
    config: DictConfig,
    inputs: Mapping[str, str],
    planned_rows: int | None = None,
) -> None:
    """Write run.json; `inputs` maps the name of each input to its SHA-256 digest; `planned_rows`:
    rows of a comparison that count for the winner, once it is complete."""
    record = {
        "command": command,
        "config": OmegaConf.to_container(config, resolve=True),
        "inputs": dict(inputs),
        "planned_rows": planned_rows,
        "source_hash": source_hash(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "versions": {name: installed_version(name) for name in PACKAGES},
    }
    text = json.dumps(record, indent=2, sort_keys=False, default=str) + "\n"
    write_atomically(folder / RUN_FILE, text.encode())


def read_run_file(folder: Path) -> dict[str, Any]:
    """run.json of an output folder."""
    path = folder / RUN_FILE
    if not path.is_file():
        raise UserError(f"{folder}: not an output folder of spac, it has no {RUN_FILE}")
    record = read_object(path, "the output folder is damaged")
    if not set(record) >= RECORDED:
        raise UserError(f"{path}: not of an output folder of spac; it needs {sorted(RECORDED)}")
    return record


def installed_version(package: str) -> str:
    """Version of an installed package, "absent" if there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"
