"""From exceptions that a person caused to one line in plain words.

Everything else is a bug and keeps its traceback.
"""

import re

from hydra.errors import (
    ConfigCompositionException,
    HydraException,
    MissingConfigException,
    OverrideParseException,
)
from omegaconf.errors import OmegaConfBaseException

from experiments.commands import Command, options
from experiments.help_text import read_config_text
from experiments.unknown import suggestion, unknown
from policies.errors import UserError
from policies.session import IllegalPlan

# Groups of costs whose names people take for those of checkpoints, and the keys of the latter.
CHECKPOINT_KEYS = {"draft": "draft_path", "model": "target"}
LAUNCHER = "hydra/launcher/"
REFUSED = (UserError, IllegalPlan, HydraException, OmegaConfBaseException)


def one_line(error: BaseException, command: Command) -> str:
    """The message for the user, without a line break."""
    root = _user_error_behind(error)
    if root is not None:
        return _joined(str(root))
    if isinstance(error, OverrideParseException):
        return f"'{error.override}' cannot be read as key=value; check brackets and quotes"
    if isinstance(error, MissingConfigException):
        return _unknown_option(error)
    if isinstance(error, ConfigCompositionException | OmegaConfBaseException):
        return _unknown_key(error, command)
    return _joined(str(error))


def _user_error_behind(error: BaseException) -> BaseException | None:
    """The UserError or IllegalPlan that Hydra may have wrapped."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, UserError | IllegalPlan):
            return seen
        seen = seen.__cause__
    return None


def _unknown_option(error: MissingConfigException) -> str:
    missing = str(error.missing_cfg_file or "")
    group, _, name = missing.partition("/")
    if not name:
        return _joined(str(error))
    if missing.startswith(LAUNCHER):
        return (
            f"hydra/launcher={missing.removeprefix(LAUNCHER)}: no such launcher is installed; "
            "pip install 'moe-spac-lab[sweep]' brings joblib, submitit_local and submitit_slurm, "
            "'moe-spac-lab[ray]' brings ray"
        )
    text = str(unknown(group, name, options(group)))
    if group in CHECKPOINT_KEYS and "/" in name:
        text += f"; a checkpoint directory is {CHECKPOINT_KEYS[group]}="
    return text


def _unknown_key(error: BaseException, command: Command) -> str:
    text = f"{error} {error.__cause__ or ''}"
    found = re.search(r"Could not (?:override|append|delete) '([^']+)'", text) or re.search(
        r"Key '([^']+)' is not in struct", text
    )
    if not found:
        return _joined(str(error.__cause__ or error))
    _, keys = read_config_text(command)
    name = found[1].split("@")[0]
    hint = suggestion(name, [key.name for key in keys])
    return f"unknown key '{name}'{hint or '.'} spac {command.name} --help lists the keys"


def _joined(text: str) -> str:
    return " ".join(text.split())
