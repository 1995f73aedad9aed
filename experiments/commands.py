"""The table of commands. It imports nothing heavy, so that `spac --help` answers at once."""

from dataclasses import dataclass
from pathlib import Path

CONF = Path(__file__).resolve().parent.parent / "conf"


@dataclass(frozen=True)
class Command:
    """A command: the module with `run(config) -> int`, and the keys that its first words fill.

    `has_policies`: it takes `policy=`, one name or a list of names.
    """

    name: str
    module: str
    summary: str
    positional: tuple[str, ...] = ()
    has_policies: bool = False

    @property
    def config_file(self) -> Path:
        """The primary config: keys, defaults, and the text of `--help`."""
        return CONF / f"{self.name}.yaml"


COMMANDS = {
    command.name: command
    for command in (
        Command("demo", "experiments.demo", "the whole chain in under three minutes"),
        Command("record", "experiments.record", "record a routing trace from a model pair"),
        Command("train-pair", "experiments.train_pair", "train the small model pair anew"),
        Command(
            "trace",
            "experiments.trace",
            "info, check, stats or import of a trace",
            positional=("action", "path"),
        ),
        Command(
            "simulate",
            "experiments.simulate",
            "one policy on one trace, with a run log",
            has_policies=True,
        ),
        Command(
            "compare",
            "experiments.compare",
            "many policies, cache ratios and windows: table, pictures, winner",
            has_policies=True,
        ),
        Command(
            "run",
            "experiments.run",
            "a policy on the real machine or the stand-in",
            has_policies=True,
        ),
        Command(
            "report",
            "experiments.report",
            "tables and pictures of a finished comparison",
            positional=("folder",),
        ),
        Command("policies", "experiments.policies_command", "list the policies that exist"),
    )
}
