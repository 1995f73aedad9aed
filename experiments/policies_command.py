"""`spac policies`: what exists, a line each; with name= source, differences, needs, parameters."""

from collections.abc import Mapping, Sequence

from omegaconf import DictConfig
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from experiments.commands import options
from experiments.fitted_table import FittedTable
from experiments.policy_choice import PolicyChoice, choose_policies
from experiments.policy_notes import FAMILIES, family, own_notes, policy_notes, summary
from experiments.terminal import terminal
from experiments.text_table import TextRow, TextTable
from experiments.values import as_list
from policies.conformance import check_policy
from policies.errors import UserError
from simulator.foresight import is_clairvoyant

KEY, WHAT = "key", "what"


def run(config: DictConfig) -> int:
    """Print a line for every policy, or all that is known of the named ones."""
    console = terminal()
    if config.check is not None:
        return check(str(config.check), console)
    if config.name is not None:
        for choice in choose_policies([str(name) for name in as_list(config.name)]):
            console.print(details(choice))
        return 0
    for name, table in policy_lists().items():
        console.print(f"{name}: {FAMILIES[name]}", style="bold", highlight=False)
        console.print(Padding(table, (0, 0, 1, 2)))
    console.print(
        "All about one, with its parameters: spac policies name=spac", style="dim", highlight=False
    )
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


def policy_lists() -> Mapping[str, Text]:
    """For each family a line per policy, its name and what it does."""
    names = options("policy")
    width = max(map(len, names)) + 2
    lines: dict[str, list[str]] = {name: [] for name in FAMILIES}
    for name in names:
        lines[family(name)].append(f"{name:<{width}}{summary(name)}")
    return {name: Text("\n".join(those), no_wrap=False) for name, those in lines.items()}


def details(choice: PolicyChoice) -> FittedTable:
    """All that is known of one policy."""
    policy = choice.build()
    shipped = "." not in choice.name
    notes = policy_notes(choice.name) if shipped else own_notes(choice.target)
    rows: list[Sequence[str]] = [("what it does" if not row else "", text) for row, text in
                                 enumerate(notes or ["it has no docstring"])]  # fmt: skip
    if is_clairvoyant(policy):
        rows.append(("sees the future", "only the simulator plays it, and it never wins"))
    rows.append(("needs", ", ".join(sorted(policy.needs)) or "counts only"))
    parameters = choice.parameters if shipped else policy.parameters()
    rows += [
        ("parameters" if not row else "", f"{key}={value}")
        for row, (key, value) in enumerate(parameters.items())
    ]
    content = TextTable(choice.name, [KEY, WHAT], [TextRow(row) for row in rows])
    return FittedTable(content, texts=[WHAT], bare=True)
