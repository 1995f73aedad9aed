"""Keys that the user gave: none of them twice, none beside another that it excludes, none idle."""

from collections.abc import Mapping, Sequence

from experiments.commands import Command
from experiments.help_text import all_keys
from experiments.key_kinds import takes_list
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
            grid = f"; several are a list, {key}=[a,b]" if takes_list(command, key) else ""
            raise UserError(f"{key} is given twice, {given[key]} and {word}{grid}")
        given[key] = word
    present = {key for key, word in given.items() if not word.endswith("=null")}
    for group in EXCLUSIVE:
        found = [given[key] for key in group if key in present]
        if len(found) > 1:
            raise UserError(f"{' and '.join(found)} exclude each other; give one of them")
    _refuse_idle_context(command, given, present)
    if command.kinds:
        _refuse_idle_keys(command, given, values.get(command.positional[0]))


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


def _refuse_idle_keys(command: Command, given: Mapping[str, str], kind: str | None) -> None:
    """UserError for a key whose help names other kinds of the command than the one asked for."""
    for key in all_keys(command):
        served = served_kinds(command, key.meaning)
        if kind in command.kinds and key.name in given and served and kind not in served:
            raise UserError(
                f"{given[key.name]} changes nothing here: it counts with spac {command.name} "
                f"{' or '.join(served)}"
            )


def served_kinds(command: Command, meaning: str) -> list[str]:
    """Kinds of the command that the help of a key begins its parts with: `theory, cells: folder
    ...; formats: workloads`. None named: all are served."""
    found: list[str] = []
    for part in meaning.split("; "):
        names = part.partition(": ")[0].split(", ")
        if set(names) <= set(command.kinds):
            found += names
    return found
