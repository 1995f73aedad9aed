"""winner.yaml: the policy that won a comparison, ready to be run on the real machine."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from experiments.commands import options
from experiments.policy_choice import PolicyChoice, choose_policies
from experiments.ranking import Standing, best_setting
from experiments.yaml_file import read_yaml
from policies.errors import UserError
from traces.atomic import write_atomically

WINNER_FILE = "winner.yaml"
DRAFTING_FILE = "winner_with_draft.yaml"  # where the winner itself drafts nothing


@dataclass(frozen=True)
class Winner:
    """A policy with its parameters, the setting it won in, and the hash of the code that ran it.

    `gamma`: drafts per pass, 0 where no speculation won; `inputs`: trace name -> digest.
    """

    policy: str
    target: str
    parameters: Mapping[str, Any]
    gamma: int
    cache_ratio: float
    model: str
    hardware: str
    source_hash: str
    of_best: float
    of_oracle: float | None
    runner_up: str | None
    lead: float | None
    approximate: bool
    inputs: Mapping[str, str]

    def choice(self) -> PolicyChoice:
        """The policy, ready to build. A file never chooses code: the policy must be one of
        conf/policy, with the target and the parameters named there."""
        if self.policy not in options("policy"):
            raise UserError(
                f"winner: '{self.policy}' is no policy of this project, and a file is not allowed "
                f"to choose code; give policy={self.policy} yourself"
            )
        (choice,) = choose_policies([self.policy], self.parameters)
        if choice.target != self.target:
            raise UserError(
                f"winner: policy {self.policy} is {choice.target}, the file says {self.target}"
            )
        return choice


def winner_of(
    rows: pd.DataFrame, result: Standing, source_hash: str, inputs: Mapping[str, str]
) -> Winner:
    """The winner of `rows` at the setting where it was fastest in the mean."""
    ratio, gamma = best_setting(rows, result.winner)
    won = rows[rows["policy"] == result.winner]
    row = won[(won["cache_ratio"] == ratio) & (won["gamma"] == gamma)].iloc[0]
    speculates = bool(row["speculation"])
    # Without a draft the winner also had the slots that the draft's VRAM gave.
    given = row["slots"] / (row["trace_layers"] * row["trace_experts"])
    return Winner(
        policy=str(row["policy_name"]),
        target=str(row["target"]),
        parameters=json.loads(row["parameters"]),
        gamma=gamma if speculates else 0,
        cache_ratio=ratio if speculates else round(float(given), 4),
        model=str(row["model"]),
        hardware=str(row["hardware"]),
        source_hash=source_hash,
        of_best=result.of_best,
        of_oracle=result.of_oracle,
        runner_up=result.runner_up,
        lead=result.lead,
        approximate=result.approximate,
        inputs=dict(inputs),
    )


def write_winner(folder: Path, winner: Winner, name: str = WINNER_FILE) -> Path:
    """Write winner.yaml, or the file called `name`, into `folder`."""
    path = folder / name
    text = yaml.safe_dump(asdict(winner), sort_keys=False, allow_unicode=True)
    write_atomically(path, text.encode())
    return path


def read_winner(path: str | Path) -> Winner:
    """The winner in a file, or in a folder that has a winner.yaml; UserError if it is damaged."""
    file = Path(path)
    if file.is_dir():
        file = file / WINNER_FILE
    if not file.is_file():
        raise UserError(f"{file}: no such file; run spac compare first")
    content = read_yaml(file, str(file), "spac compare writes such a file")
    names = {field.name for field in fields(Winner)}
    if not isinstance(content, dict) or set(content) != names:
        found = sorted(map(str, content)) if isinstance(content, dict) else type(content).__name__
        raise UserError(f"{file}: expected the keys {sorted(names)}, found {found}")
    winner = Winner(**content)
    if type(winner.gamma) is not int or winner.gamma < 0:
        raise UserError(f"{file}: gamma={winner.gamma}: must be a whole number, at least 0")
    if not isinstance(winner.cache_ratio, float | int) or not 0 < winner.cache_ratio <= 1:
        raise UserError(f"{file}: cache_ratio={winner.cache_ratio}: must be above 0, at most 1")
    if not isinstance(winner.parameters, Mapping):
        raise UserError(f"{file}: parameters={winner.parameters}: must be keys with values")
    return winner
