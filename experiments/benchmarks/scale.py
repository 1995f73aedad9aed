"""Traces of any length: a generated one is played request by request, and what is watched is that
memory stays where it is and that the last tokens cost what the first did.

    python -m experiments.benchmarks.scale 1_000_000 spac
"""

import json
import resource
import sys
import time
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.progress import Progress

from experiments.benchmarks.scene import CACHE_RATIO, REQUEST_TOKENS
from experiments.commands import COMMANDS
from experiments.configuration import compose_config
from experiments.machine import Capacity, machine_from
from experiments.setting import Setting
from policies.errors import UserError
from policies.zoo import ZOO
from simulator.totals import simulate_totals
from traces.synthetic_replay import BankReplay, BankShape

GAMMA = 8
LEAST_TOKENS = 20 * REQUEST_TOKENS  # two requests in each tenth
KIB = 1024  # of Linux's ru_maxrss


@dataclass(frozen=True)
class Scale:
    """CPU seconds of generating and playing `tokens` tokens, per token in the first and the last
    tenth; the largest resident memory of the process so far; tokens per second as simulated."""

    policy: str
    tokens: int
    passes: int
    cpu_seconds: float
    first_tenth_us_per_token: float
    last_tenth_us_per_token: float
    last_over_first: float
    peak_resident_bytes: int
    simulated_tokens_per_second: float


def play_scale(tokens: int, policy: str = "spac", console: Console | None = None) -> Scale:
    """Play about `tokens` tokens, in whole requests, at 48 layers x 128 experts; UserError for too
    few or an unknown policy."""
    if tokens < LEAST_TOKENS:
        raise UserError(f"tokens={tokens}: need at least {LEAST_TOKENS} to compare tenths")
    if policy not in ZOO:
        raise UserError(f"policy {policy}: there are {', '.join(sorted(ZOO))}")
    shape = BankShape(requests=-(-tokens // REQUEST_TOKENS), tokens=REQUEST_TOKENS)
    replay = BankReplay(shape)
    machine = machine_from(compose_config(COMMANDS["bench"], []))
    setting = Setting(
        machine, Capacity(cache_ratio=CACHE_RATIO), GAMMA, 4, "late", "concurrent", None
    )
    marks = [(0, time.process_time())]
    with Progress(console=console or Console(stderr=True)) as bar:
        task = bar.add_task(policy, total=shape.requests * REQUEST_TOKENS)

        def progress(so_far: int, total: int) -> None:
            marks.append((so_far, time.process_time()))
            bar.update(task, completed=so_far)

        settings, costs = setting.simulation(replay.model), setting.costs(replay, "")
        totals = simulate_totals(replay, ZOO[policy](), costs, settings, progress)
    first, last = seconds_per_token(marks, 0.0, 0.1), seconds_per_token(marks, 0.9, 1.0)
    return Scale(
        policy, marks[-1][0], totals.passes, marks[-1][1] - marks[0][1], 1e6 * first, 1e6 * last,
        last / first, KIB * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        totals.tokens_per_second,
    )  # fmt: skip


def seconds_per_token(marks: list[tuple[int, float]], begin: float, end: float) -> float:
    """Between the first marks at or after these shares of all tokens; marks are (tokens so far,
    seconds), rising. The first request, which warms caches and code, does not count."""
    later = marks[1:]
    total = later[-1][0]
    inside = [mark for mark in later if begin * total <= mark[0] <= end * total]
    (tokens, seconds), (tokens_after, seconds_after) = inside[0], inside[-1]
    return (seconds_after - seconds) / (tokens_after - tokens)


def main(arguments: list[str]) -> int:
    """Print the figures as JSON; 2 with one line for arguments that cannot be used."""
    try:
        tokens = int(arguments[0]) if arguments else 1_000_000
        policy = arguments[1] if len(arguments) > 1 else "spac"
        print(json.dumps(asdict(play_scale(tokens, policy)), indent=2))
    except (UserError, ValueError) as error:
        print(f"error: {error}; usage: python -m {__spec__.name} TOKENS POLICY", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
