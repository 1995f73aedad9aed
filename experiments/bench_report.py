"""The numbers of `spac bench` as a Markdown table that a README can include."""

from typing import Any

from experiments.benchmarks.measures import Measure


def markdown(result: dict[str, Any]) -> str:
    """From the content of bench.json; decision times of single policies are in their own file."""
    host = result["host"]
    versions = ", ".join(f"{name} {number}" for name, number in host["versions"].items())
    lines = [
        f"Measured on {host['cpu']}, {host['cores']} cores, {host['memory_gib']} GiB; {versions}. "
        f"Load average {host['load_average'][0]} before and {result['load_average_after'][0]} "
        f"after. Written by `spac bench`, size {result['size']}.",
        "",
        "| section | what | measured | goal | |",
        "|---|---|---:|---:|---|",
    ]
    for record in result["measures"]:
        one = Measure(**{key: value for key, value in record.items() if key != "met"})
        if one.section == "decisions" and one.goal is None:
            continue
        cells = (one.section, one.what, shown_value(one), shown_goal(one), one.note)
        lines.append(f"| {' | '.join(cells)} |")
    lines += [f"| {name} | left out: {why} | | | |" for name, why in result["left_out"].items()]
    return "\n".join(lines) + "\n"


def goals_table(result: dict[str, Any]) -> str:
    """The measures that have a goal, as a short table; what must not differ, as a sentence."""
    host = result["host"]
    lines = [
        f"As last measured on {host['cpu']}, {host['cores']} cores, at a load average of "
        f"{host['load_average'][0]:.1f}; ratios are of one run.",
        "",
        "| section | what | measured | goal |",
        "|---|---|---:|---:|",
    ]
    differing = []
    for record in result["measures"]:
        one = Measure(**{key: value for key, value in record.items() if key != "met"})
        if one.goal == 0 and not one.met:
            differing.append(f"{one.what}: {shown_value(one)}")
        elif one.goal:
            cells = (one.section, one.what, shown_value(one), shown_goal(one))
            lines.append(f"| {' | '.join(cells)} |")
    lines += [f"| {name} | left out: {why} | | |" for name, why in result["left_out"].items()]
    equal = (
        "Hits, optima of the integer programs and tables of grids are those of their references."
    )
    return "\n".join([*lines, "", f"Differing: {'; '.join(differing)}." if differing else equal])


def shown_value(one: Measure) -> str:
    """Three digits and the unit."""
    number = f"{one.value:,.0f}" if abs(one.value) >= 100 else f"{one.value:.3g}"
    return f"{number} {one.unit}"


def shown_goal(one: Measure) -> str:
    """The goal, and whether it is met."""
    if one.goal is None:
        return ""
    return f"{one.bound} {one.goal:g}, {'met' if one.met else 'missed'}"
