"""The folder with routing files of other models that a study may read."""

import os
from pathlib import Path

from policies.errors import UserError


def data_folder(given: object) -> Path | None:
    """data=, else the folder `traces` of the environment's SPAC_DATA; False for none."""
    if given is not None and given is not False:
        path = Path(str(given)).expanduser()
        if not path.is_dir():
            raise UserError(f"data={given}: no such folder")
        return path
    if given is False or "SPAC_DATA" not in os.environ:
        return None
    path = Path(os.environ["SPAC_DATA"]) / "traces"
    return path if path.is_dir() else None
