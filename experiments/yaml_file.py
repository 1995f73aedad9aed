"""YAML files of the user's: whatever is wrong with one as a file is a line that names it."""

from pathlib import Path
from typing import Any

import yaml

from policies.errors import UserError


def read_yaml(path: Path, where: str, remedy: str) -> Any:
    """Plain data, never code. UserError begins with `where`, such as policy=PATH, and ends with
    `remedy` where the file is no YAML."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{where}: cannot read it ({error.strerror or error})") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # Not the whole message: it may quote the file.
        raise UserError(f"{where}: not valid YAML ({type(error).__name__}); {remedy}") from None
