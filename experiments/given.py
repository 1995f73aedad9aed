"""Keys that the user gave: none of them twice, none beside another that it excludes, none idle."""

from collections.abc import Mapping, Sequence

from experiments.commands import Command
from experiments.idle_keys import refuse_idle_keys
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
    ("out", "outputs"),
    ("record_workload", "record_prompts"),
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
    refuse_idle_keys(command, given, present)
