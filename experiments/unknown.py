"""Names that are not known, with the nearest that is."""

import difflib
from collections.abc import Iterable

from policies.errors import UserError


def suggestion(word: str, known: Iterable[str]) -> str:
    """A half-sentence with the nearest known word, or nothing."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f", did you mean {near[0]}?" if near else ""


def unknown(what: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a name that is not among `known`; it lists them."""
    names = sorted(known)
    hint = suggestion(name, names) or "."
    return UserError(f"unknown {what} '{name}'{hint} There are: {', '.join(names) or 'none'}")
