"""`spac trace generate` and `spac trace shuffle`: synthetic traces, marked as such."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from omegaconf import DictConfig
from rich.console import Console

from experiments.fitted_table import FittedTable
from experiments.text_table import TextRow, TextTable
from experiments.trace_choice import find_trace, seed_from
from experiments.trace_fit import generate_fitted
from experiments.trace_model import named_model
from experiments.trace_tables import info_table
from experiments.unknown import unknown
from experiments.values import number, whole_number
from policies.errors import UserError
from traces.generated import write_generated
from traces.generators import GENERATORS
from traces.generators.shape import Drawn, Statistic, TextShape
from traces.importers.routing import Given
from traces.manifest import ModelInfo
from traces.reader import open_trace
from traces.shuffled import write_shuffled

FITTED = "fitted"
LAWS = ("zipf", "reuse", "phase_tokens", "working_set", "carried", "capacity", "fit")
EXPERT_BYTES = 1 << 20


def generate(config: DictConfig, console: Console) -> int:
    """Write a new trace of the named generator and show what was asked for and what came out."""
    if config.out is None:
        raise UserError("spac trace generate needs out=<new trace directory>")
    name, seed = str(config.path), seed_from(config)
    if name == FITTED:
        refuse_other_laws(config, name, ("fit",))
        given = named_model(config)
        rows = {key: whole_number(key, config[key]) for key in ("requests", "tokens")
                if config[key] is not None}  # fmt: skip
        if config.layers is not None or config.top_k is not None:
            raise UserError("layers= and top_k= are those of what is fitted; leave them out")
        trace, statistics = generate_fitted(config.fit, given, rows, str(config.out), seed)
    else:
        if name not in GENERATORS:
            raise unknown("generator", name, [*GENERATORS, FITTED])
        trace, statistics = _draw(config, name, seed)
    console.print(info_table(trace))
    console.print(statistics_table(statistics))
    return 0


def shuffle(config: DictConfig, console: Console) -> int:
    """Write a null of a trace."""
    if config.out is None:
        raise UserError("spac trace shuffle needs out=<new trace directory>")
    within = "trace" if config.within is None else str(config.within)
    trace = open_trace(find_trace(config.path))
    written = write_shuffled(trace, str(config.out), within, seed_from(config))
    console.print(info_table(written))
    return 0


def refuse_other_laws(config: DictConfig, generator: str, own: Sequence[str]) -> None:
    """UserError for a parameter of another generator."""
    for key in LAWS:
        if config[key] is not None and key not in own:
            listed = ", ".join(own)
            raise UserError(f"{key}={config[key]}: no parameter of {generator}, which has {listed}")


def statistics_table(statistics: Sequence[Statistic]) -> FittedTable:
    """What was asked for beside what was measured on the rows written."""
    rows = [TextRow([one.name, f"{one.asked:.4g}", f"{one.measured:.4g}"]) for one in statistics]
    headings = ["statistic", "asked for", "measured"]
    return FittedTable(TextTable("of the rows written", headings, rows))


def _draw(config: DictConfig, name: str, seed: int) -> tuple[Any, list[Statistic]]:
    generator = GENERATORS[name]
    own = [field.name for field in fields(generator.law)]
    refuse_other_laws(config, name, own)
    law = generator.law(**{
        field.name: (whole_number if field.type in (int, "int") else number)(
            field.name, config[field.name]
        )
        for field in fields(generator.law)
        if config[field.name] is not None
    })  # fmt: skip
    given = named_model(config)
    shape = _shape(config, given)
    drawn = Drawn(shape, generator.draw(law, shape, seed))
    # Measured before it is written: a law that cannot be measured on so few rows leaves nothing.
    statistics = generator.measure(law, drawn)
    model = ModelInfo(
        given.name or "synthetic", shape.layers, shape.experts, shape.top_k,
        given.expert_bytes or EXPERT_BYTES,
    )  # fmt: skip
    trace = write_generated(
        config.out, drawn.experts, shape.request, model, name, asdict(law), seed
    )
    return trace, statistics


def _shape(config: DictConfig, given: Given) -> TextShape:
    """The shape of the named model, changed by the keys that were given."""
    values = {"layers": given.layers, "experts": given.experts, "top_k": given.top_k}
    for key in ("layers", "top_k", "requests", "tokens"):
        if config[key] is not None:
            values[key] = whole_number(key, config[key])
    return TextShape(**{key: value for key, value in values.items() if value is not None})
