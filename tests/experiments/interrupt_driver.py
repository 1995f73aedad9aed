"""Runs `spac run` again and again in this process and sends it Ctrl-C at random moments.

Usage: python interrupt_driver.py PAIR ROUNDS SEED. Prints one JSON object and asserts nothing.
"""

import json
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from experiments.__main__ import main
from policies.errors import UserError
from traces.runlog import read_runlog


def words(pair: Path, out: Path) -> list[str]:
    return [
        "run", f"target={pair / 'target'}", f"draft_path={pair / 'draft'}", "policy=lru_fetch",
        "slots=5", "paced=false", "max_new_tokens=300", "prompt=w7 w8 w9", f"out={out}",
    ]  # fmt: skip


def problems_of(out: Path, code: int) -> list[str]:
    """What is wrong with the log that a round left behind."""
    found = []
    names = [thread.name for thread in threading.enumerate()]
    found += [name for name in names if name.startswith(("standin-", "cpu-experts"))]
    if (out / "runlog" / "run.json").exists():
        try:
            log = read_runlog(out / "runlog")
        except UserError as error:
            return [*found, str(error)]
        passes = set(log.passes["pass_index"])
        if passes != set(range(len(passes))):
            found.append("passes are missing or twice")
        if set(log.layers["pass_index"]) - passes or set(log.drafts["pass_index"]) - passes:
            found.append("rows of a pass that is not there")
        if code == 0 and not log.info.complete:
            found.append("finished but not complete")
    return found


def round_of(pair: Path, out: Path, delay: float, twice: bool) -> tuple[int, list[str], int]:
    """Exit code, problems, passes in the log."""

    def press(*_: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        if twice:
            signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
            signal.setitimer(signal.ITIMER_REAL, 0.002)

    signal.signal(signal.SIGALRM, press)
    signal.setitimer(signal.ITIMER_REAL, delay)
    try:
        code = main(words(pair, out))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    log = out / "runlog" / "run.json"
    passes = len(read_runlog(out / "runlog").passes) if log.exists() else 0
    return code, problems_of(out, code), passes


def rounds(pair: Path, count: int, seed: int) -> dict[str, Any]:
    choose, folder = random.Random(seed), Path("rounds")
    main(words(pair, folder / "warm"))
    begun = time.monotonic()
    main(words(pair, folder / "whole"))
    whole = time.monotonic() - begun
    codes, problems, passes = [], [], []
    for number in range(count):
        delay = max(1e-3, choose.uniform(0.0, 1.1 * whole))
        out = folder / str(number)
        code, found, done = round_of(pair, out, delay, twice=number % 3 == 2)
        codes.append(code)
        passes.append(done)
        problems += [f"round {number}: {problem}" for problem in found]
    return {"codes": codes, "problems": problems, "passes": passes}


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # even if started in the background
    print("\nRESULT " + json.dumps(rounds(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
