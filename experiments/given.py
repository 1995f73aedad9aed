"""Keys that the user gave: none of them twice, none beside another that it excludes, none idle."""

from collections.abc import Mapping, Sequence

from experiments.commands import Command
from policies.errors import UserError

# Of each group at most one can be given.
EXCLUSIVE = (
    ("cache_ratio", "slots", "budget"),
    ("winner", "policy"),
    ("prompt", "prompts"),
    ("prompt", "workload"),
    ("prompt", "requests"),
    ("name", "check"),
)


def refuse_conflicts(command: Command, values: Mapping[str, str], overrides: Sequence[str]) -> None:
    """UserError for keys that cannot stand together. `values`: positional words and free texts by
    key; `overrides`: words key=value. A value of null counts as not given."""
    given = {key: f"{key}={value}" for key, value in values.items()}
    for word in overrides:
        key, equals, _ = word.partition("=")
        if not equals:
            continue
        if key in given:
            raise UserError(
                f"{key} is given twice, {given[key]} and {word}; a list is a grid where the "
                f"command plays grids, {key}=[a,b]"
            )
        given[key] = word
    present = {key for key, word in given.items() if not word.endswith("=null")}
    for group in EXCLUSIVE:
        found = [given[key] for key in group if key in present]
        if len(found) > 1:
            raise UserError(f"{' and '.join(found)} exclude each other; give one of them")
    _refuse_idle_context(command, given, present)


def _refuse_idle_context(command: Command, given: Mapping[str, str], present: set[str]) -> None:
    """The context counts where VRAM is divided: by budget=vram, and where a comparison gives the
    draft's VRAM, its KV with it, to slots."""
    if "context" not in present or "budget" in present:
        return
    if command.name == "simulate" or given.get("no_speculation") == "no_speculation=null":
        raise UserError(
            f"{given['context']} changes nothing here: slots come from cache_ratio= or slots=; "
            "it counts with budget=vram"
        )
