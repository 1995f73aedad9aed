"""A section that found something wrong, and what it found."""

from collections.abc import Mapping
from typing import Any


class SectionFailed(Exception):
    """`found` goes into the result as it is."""

    def __init__(self, message: str, found: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.found = dict(found)
