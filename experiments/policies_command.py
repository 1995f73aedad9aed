"""`spac policies`: what exists, where it comes from, what it needs."""

from omegaconf import DictConfig
from rich.console import Console
from rich.table import Table

from experiments.configuration import as_list, options
from experiments.policy_choice import choose_policies, policy_notes


def run(config: DictConfig) -> int:
    """Print a table of the named policies, or of all."""
    names = options("policy") if config.name is None else as_list(config.name)
    Console().print(policy_table([str(name) for name in names]))
    return 0


def policy_table(names: list[str]) -> Table:
    """One row per policy."""
    table = Table("policy", "what it does, and its source", "needs", "parameters", show_lines=True)
    for choice in choose_policies(names):
        policy = choice.build()
        notes = [] if "." in choice.name else policy_notes(choice.name)
        if getattr(policy, "clairvoyant", False):
            notes.append("Sees the future: simulator only, never wins.")
        table.add_row(
            choice.name,
            "\n".join(notes),
            ", ".join(sorted(policy.needs)) or "counts only",
            "\n".join(f"{key}={value}" for key, value in choice.parameters.items()),
        )
    return table
