"""The table of commands. It imports nothing heavy, so that `spac --help` answers at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

CONF = Path(__file__).resolve().parent.parent / "conf"
POLICY_NAMES = {"policy": "policies"}
PLAYED = {**POLICY_NAMES, "decision": "decision_file"}


@dataclass(frozen=True)
class Command:
    """A command: the module with `run(config) -> int`, and the keys that its first words fill.

    `renamed`: keys that the user writes -> keys of the config file, where the user's word is also
    the name of a config group, which Hydra would look up instead of taking the value.
    `kinds`: first words that are commands in themselves, or values of the key `chosen_by` that
    choose parts of it; the help of a key begins with those it is for, where it is not for all.
    `free_text`: keys whose values are taken as they are, brackets, commas and all.
    """

    name: str
    module: str
    summary: str
    positional: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    free_text: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    chosen_by: str = ""

    @property
    def config_file(self) -> Path:
        """The primary config: keys, defaults, and the text of `--help`."""
        return CONF / f"{self.name}.yaml"


COMMANDS = {
    command.name: command
    for command in (
        Command(
            "demo",
            "experiments.demo",
            "the whole chain: a minute or two, more while kernels compile",
            renamed=PLAYED,
        ),
        Command("record", "experiments.record", "record a routing trace from a model pair"),
        Command("train-pair", "experiments.train_pair", "train the small model pair anew"),
        Command(
            "trace",
            "experiments.trace",
            "look at, check, import, generate, shuffle or export a trace",
            positional=("action", "path"),
            renamed={"model": "model_name"},
        ),
        Command(
            "simulate",
            "experiments.simulate",
            "one policy on one trace, with a run log",
            renamed=PLAYED,
        ),
        Command(
            "compare",
            "experiments.compare",
            "many policies, cache ratios and windows: table, pictures, winner",
            renamed=PLAYED,
        ),
        Command(
            "tune",
            "experiments.tune",
            "search a policy's parameters, checked on requests held out",
            renamed=PLAYED,
        ),
        Command(
            "run",
            "experiments.run",
            "a policy on the real machine or the stand-in",
            renamed=PLAYED,
            free_text=("prompt",),
        ),
        Command(
            "calibrate",
            "experiments.calibrate",
            "measure a machine and write its hardware profile",
        ),
        Command(
            "validate",
            "experiments.validate",
            "predicted against measured time, hits and bytes of several policies",
            renamed=POLICY_NAMES,
            kinds=("padded", "unpadded"),
            chosen_by="clock",
        ),
        Command(
            "report",
            "experiments.report",
            "a page with tables and pictures of a finished comparison",
            positional=("folder",),
        ),
        Command(
            "timeline",
            "experiments.timeline",
            "runs over time for ui.perfetto.dev, and a pass as a picture",
            positional=("runlog",),
        ),
        Command(
            "study",
            "experiments.study",
            "a question about the method, answered with numbers: theory, paper, cells or formats",
            positional=("name",),
            kinds=("theory", "paper", "formats", "cells"),
            chosen_by="name",
        ),
        Command(
            "bench",
            "experiments.bench",
            "measure engines, caches, solvers, decisions and start on this machine",
            renamed=POLICY_NAMES,
            kinds=("engines", "caches", "solvers", "decisions", "start", "grid"),
            chosen_by="only",
        ),
        Command("policies", "experiments.policies_command", "list the policies that exist"),
    )
}


def options(group: str) -> list[str]:
    """Names of the options of a config group, from the files in conf/<group>."""
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))
