"""Policies with parameters of their own in files: `policy=PATH`, as `spac tune` writes them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from experiments.commands import options
from experiments.unknown import unknown
from experiments.yaml_file import read_yaml
from policies.errors import UserError
from traces.atomic import write_atomically

POLICY_FILE = "policy.yaml"
KEYS = {"name", "policy", "parameters", "gamma", "evidence"}


@dataclass(frozen=True)
class PolicyFile:
    """`name`: in tables; `policy`: the one of conf/policy that it is; `gamma`: drafts per pass that
    it was tuned with, None where the run's counts; `evidence`: how it was found."""

    name: str
    policy: str
    parameters: Mapping[str, Any]
    gamma: int | None
    evidence: Mapping[str, Any]


def is_path(name: str) -> bool:
    """True if `name` names a file or a folder, and no policy of the project."""
    return "/" in name or name.endswith((".yaml", ".yml"))


def write_policy(folder: Path, policy: PolicyFile, about: str) -> Path:
    """Write policy.yaml into `folder`, with the line `about` above it."""
    values = {key: getattr(policy, key) for key in ("name", "policy", "parameters", "gamma")}
    text = f"# {about}\n" + yaml.safe_dump(values | {"evidence": policy.evidence}, sort_keys=False)
    write_atomically(folder / POLICY_FILE, text.encode())
    return folder / POLICY_FILE


def read_policy(path: str | Path) -> PolicyFile:
    """The policy in a file, or in a folder with a policy.yaml; UserError if it is damaged. A file
    never chooses code: its policy is one of the project's."""
    file = Path(path).expanduser()
    if file.is_dir():
        file = file / POLICY_FILE
    content = read_yaml(file, f"policy={file}", "spac tune writes such a file")
    if not isinstance(content, dict) or set(content) != KEYS:
        found = sorted(map(str, content)) if isinstance(content, dict) else type(content).__name__
        raise UserError(f"policy={file}: expected the keys {sorted(KEYS)}, found {found}")
    if content["policy"] not in options("policy"):
        raise unknown(f"policy in {file}", str(content["policy"]), options("policy"))
    if not re.fullmatch(r"[\w .-]{1,60}", str(content["name"])):
        raise UserError(f"policy={file}: name: must be up to 60 letters, digits, - and _")
    for key in ("parameters", "evidence"):
        if not isinstance(content[key], dict):
            raise UserError(f"policy={file}: {key}={content[key]}: must be keys with values")
    gamma = content["gamma"]
    if gamma is not None and (type(gamma) is not int or gamma < 0):
        raise UserError(f"policy={file}: gamma={gamma}: must be a whole number, or null")
    return PolicyFile(**content)
