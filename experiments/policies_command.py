"""`spac policies`: what exists, a line each; with name= source, differences, needs, parameters."""

from omegaconf import DictConfig
from rich.console import Console
from rich.table import Table

from experiments.configuration import as_list, options
from experiments.policy_choice import choose_policies, policy_notes
from policies.conformance import check_policy
from policies.errors import UserError
from simulator.foresight import is_clairvoyant


def run(config: DictConfig) -> int:
    """Print a line for every policy, or all that is known of the named ones."""
    console = Console()
    if config.check is not None:
        return check(str(config.check), console)
    if config.name is None:
        console.print(policy_list())
        console.print(
            "* sees the future, simulator only. All about one: spac policies name=spac",
            style="dim", highlight=False,
        )  # fmt: skip
        return 0
    console.print(policy_table([str(name) for name in as_list(config.name)]))
    return 0


def check(name: str, console: Console) -> int:
    """Run the conformance suite; a broken rule is a refusal."""
    (choice,) = choose_policies([name])
    try:
        decisions = check_policy(choice.build)
    except AssertionError as error:
        raise UserError(f"policy {name} breaks a rule: {error}") from error
    console.print(f"{name}: {decisions} decisions checked, every rule kept", highlight=False)
    return 0


def policy_list() -> Table:
    """One line per policy, for a terminal of 80 columns."""
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(no_wrap=True, min_width=max(map(len, options("policy"))) + 1)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for choice in choose_policies(options("policy")):
        star = "*" if is_clairvoyant(choice.build()) else ""
        table.add_row(f"{choice.name}{star}", summary(choice.name))
    return table


def summary(name: str) -> str:
    """The first sentence of a policy's notes."""
    text = " ".join(policy_notes(name))
    return text.split(". ")[0].removesuffix(".")


def policy_table(names: list[str]) -> Table:
    """One row per policy."""
    table = Table("policy", "what it does, and its source", "needs", "parameters", show_lines=True)
    for choice in choose_policies(names):
        policy = choice.build()
        notes = [] if "." in choice.name else policy_notes(choice.name)
        if is_clairvoyant(policy):
            notes.append("Sees the future: simulator only, never wins.")
        table.add_row(
            choice.name,
            "\n".join(notes),
            ", ".join(sorted(policy.needs)) or "counts only",
            "\n".join(f"{key}={value}" for key, value in choice.parameters.items()),
        )
    return table
