"""What is said of a policy: the comment at the top of its file in conf/policy, or a docstring."""

import inspect
import itertools

from experiments.commands import CONF
from experiments.policy_choice import named_function

FAMILY = "Family: "
FAMILIES = {
    "ours": "the policy of this project",
    "MoE-SpAc": "the method as published, as released, and without its parts",
    "published": "other systems, as far as their papers and sources tell",
    "caches": "classic rules",
    "baselines": "no decision while running",
    "no speculation": "for one token a pass",
    "bounds": "see the future; only the simulator plays them, and they never win",
}


def policy_notes(name: str) -> list[str]:
    """The lines of the comment: what it is in few words, more of it, source, differences."""
    return [line for line in _comment(name) if not line.startswith(FAMILY)]


def summary(name: str) -> str:
    """The first sentence of the notes."""
    return " ".join(policy_notes(name)).split(". ")[0].removesuffix(".")


def family(name: str) -> str:
    """The one of FAMILIES that the comment names."""
    (line,) = (line for line in _comment(name) if line.startswith(FAMILY))
    return line.removeprefix(FAMILY).removesuffix(".")


def own_notes(target: str) -> list[str]:
    """The paragraphs of the docstring of a class or function, by its import path."""
    text = inspect.getdoc(named_function(target, f"name={target}")) or ""
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


def _comment(name: str) -> list[str]:
    lines = (CONF / "policy" / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    notes = itertools.takewhile(lambda line: line.startswith("#"), lines)
    return [line.removeprefix("#").strip() for line in notes]
