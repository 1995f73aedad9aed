"""The values that the paper study fits, each on one published number only, and their file."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from experiments.key_kinds import is_number
from experiments.studies.paper_targets import GAMMA, LLAMA, LLAMA_SPECULATION
from experiments.studies.paper_world import Play, World, play, with_cpu_rate
from experiments.yaml_file import read_yaml
from policies.errors import UserError
from traces.atomic import write_atomically
from traces.synthetic_routing import RoutingLaw

FITTED_FILE = Path(__file__).resolve().parents[1] / "results" / "paper" / "fitted.yaml"
HEADER = """\
# Fitted once by `spac study paper refit=true`, then frozen. Nothing else in the study is adjusted.
# cpu_bytes_per_second: on 15.23 tokens/s (llama.cpp = all experts on the CPU, no draft) alone.
# acceptance: on 17.66 tokens/s (llama.cpp with speculation = the same at gamma 8) alone.
# routing: the generator's law per model, on published one-token statistics.
"""


@dataclass(frozen=True)
class Fitted:
    """`routing`: law per model name."""

    cpu_bytes_per_second: float
    acceptance: float
    routing: Mapping[str, RoutingLaw]


def read_fitted(path: Path = FITTED_FILE) -> Fitted:
    """The frozen values; UserError with the remedy if the file is missing or incomplete."""
    if not path.is_file():
        raise UserError(f"{path}: no fitted values; make them with spac study paper refit=true")
    remedy = "spac study paper refit=true writes such a file"
    values: Any = read_yaml(path, str(path), remedy)
    try:
        fitted = Fitted(
            values["cpu_bytes_per_second"],
            values["acceptance"],
            {name: RoutingLaw(**law) for name, law in values["routing"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{path}: not a file of fitted values ({error})") from error
    _refuse_impossible(path, fitted)
    return fitted


def _refuse_impossible(path: Path, fitted: Fitted) -> None:
    """UserError for a value that is no number, or outside what its law can have."""
    unit = (0.0, 1.0)
    limits = {"acceptance": unit, "memory": unit, "keep": unit, "cpu_bytes_per_second": (1.0, None)}
    found = {key: getattr(fitted, key) for key in ("cpu_bytes_per_second", "acceptance")}
    laws = {f"routing.{name}.{key}": value for name, law in fitted.routing.items()
            for key, value in asdict(law).items()}  # fmt: skip
    for name, value in (found | laws).items():
        low, high = limits.get(name.rpartition(".")[2], (0.0, None))
        if not is_number(value) or value < low or (high is not None and value > high):
            end = "" if high is None else f" to {high}"
            raise UserError(f"{path}: {name}={value}: must be a number from {low}{end}")


def write_fitted(path: Path, fitted: Fitted) -> None:
    """With a comment on where each value comes from."""
    laws = {name: asdict(law) for name, law in fitted.routing.items()}
    values = {
        "cpu_bytes_per_second": fitted.cpu_bytes_per_second,
        "acceptance": fitted.acceptance,
        "routing": laws,
    }
    write_atomically(path, (HEADER + OmegaConf.to_yaml(OmegaConf.create(values))).encode())


def fit_cpu_rate(world: World) -> float:
    """Bytes per second at which all_cpu without a draft makes 15.23 tokens/s."""

    def speed(rate: float) -> float:
        faster = replace(world, machine=with_cpu_rate(world.machine, rate))
        return play(faster, Play("all_cpu", 0)).tokens_per_second

    return round(bisect(speed, 2e10, 4e11, LLAMA, 1e-4), -6)


def fit_acceptance(world: World) -> float:
    """Acceptance at which all_cpu with gamma 8 makes 17.66 tokens/s."""

    def speed(acceptance: float) -> float:
        return play(replace(world, acceptance=acceptance), Play("all_cpu", GAMMA)).tokens_per_second

    return round(bisect(speed, 0.0, 1.0, LLAMA_SPECULATION, 2e-3), 4)


def bisect(
    rising: Callable[[float], float], low: float, high: float, target: float, tolerance: float
) -> float:
    """Where `rising` reaches `target`, to a relative `tolerance` of it or 24 halvings; an end of
    the range where the target lies beyond it."""
    middle = low
    for _ in range(24):
        middle = (low + high) / 2
        value = rising(middle)
        if abs(value - target) <= tolerance * target:
            break
        low, high = (middle, high) if value < target else (low, middle)
    return middle
