"""Values of a config's keys as Python's, or a UserError that names the key."""

from typing import Any

from omegaconf import OmegaConf

from experiments.key_kinds import as_written
from policies.errors import UserError

MOST_THREADS = 1024


def as_list(value: object) -> list[Any]:
    """A single value or a list of them, as a plain list: lists are grids."""
    plain = OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
    return list(plain) if isinstance(plain, list) else [plain]


def as_mapping(value: object) -> dict[str, Any]:
    """A node of the config as plain data; empty for null."""
    if value is None:
        return {}
    plain = OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
    if not isinstance(plain, dict):
        raise UserError(f"{value!r}: expected keys with values")
    return {str(key): content for key, content in plain.items()}


def number(key: str, value: object) -> float:
    """A number; UserError names the key otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{key}={as_written(value)}: not a number")
    return float(value)


def truth(key: str, value: object) -> bool:
    """true or false; UserError names the key for anything else, which Python would take as true."""
    if not isinstance(value, bool):
        raise UserError(f"{key}={as_written(value)}: must be true or false")
    return value


def whole_number(key: str, value: object) -> int:
    """A whole number; UserError names the key otherwise."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise UserError(f"{key}={as_written(value)}: not a whole number")
    return value


def threads(value: object) -> int:
    """The key threads=; UserError for more than a thread pool can have."""
    found = positive("threads", value)
    if found > MOST_THREADS:
        raise UserError(f"threads={found}: must be at most {MOST_THREADS}")
    return found


def positive(key: str, value: object) -> int:
    """A whole number of at least 1; UserError names the key otherwise."""
    found = whole_number(key, value)
    if found < 1:
        raise UserError(f"{key}={found}: must be at least 1")
    return found
