"""Records in child processes and kills them; test_killed_recorder reads one JSON line per kill.

Everything slow is imported and loaded once, then each recording runs in a fork. A part takes 25 ms
to write and a marker file exists meanwhile, so that the parent can kill in the middle of it.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from conftest import LoadedPair, load_pair

from runtime.prompts import Prompt
from runtime.recorder import RecordingSettings, record_dense
from traces.manifest import SamplingInfo
from traces.writer import TraceWriter

SETTINGS = RecordingSettings("kill", 2, SamplingInfo("keyed", 0.8, 1), 5, rows_per_part=1)
PROMPTS = [Prompt(str(number), (number + 6, number + 9)) for number in range(10)]


def slow_sync(out: Path, marker: Path, descriptor: int) -> None:
    """An fsync that takes its time; the marker exists while a part is open."""
    inode = os.fstat(descriptor).st_ino
    inside_part = any(file.stat().st_ino == inode for file in out.glob(".tmp-part*"))
    if inside_part:
        marker.touch()
    time.sleep(0.025)
    os.fsync(descriptor)
    if inside_part:
        marker.unlink()


def record(out: Path, pair: LoadedPair) -> None:
    """The child: record, telling in a file which request is running."""
    seen = os.open(out.with_suffix(".seen"), os.O_CREAT | os.O_WRONLY)
    record_dense(
        out,
        pair.target,
        pair.draft,
        PROMPTS,
        SETTINGS,
        writer=partial(TraceWriter, sync=partial(slow_sync, out, out.with_suffix(".marker"))),
        progress=lambda request, tokens: os.pwrite(seen, bytes([request]), 0) and None,
    )


def in_child(out: Path, pair: LoadedPair) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            record(out, pair)
            code = 0
        finally:
            os._exit(code)
    return child


def wait_until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 60
    while not condition():
        if time.monotonic() > limit:
            raise TimeoutError("the recording child does not come to the point")
        time.sleep(0.001)


def kill_once(out: Path, pair: LoadedPair, inside: bool, rng: random.Random) -> None:
    """Kill while a part is written, after some others, or at any moment."""
    child = in_child(out, pair)
    wait_until((out / "manifest.json").is_file)
    marker = out.with_suffix(".marker")
    if inside:
        wanted = rng.randrange(len(PROMPTS) - 3)
        wait_until(lambda: len(list(out.glob("part-*"))) >= wanted)
        wait_until(marker.is_file)
    time.sleep(rng.uniform(0, 0.01) if inside else rng.uniform(0, 0.5))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    seen = out.with_suffix(".seen").read_bytes()
    line = {
        "trace": out.name,
        "killed": os.WIFSIGNALED(status),
        "inside_part": marker.is_file(),
        "last_request": seen[0] if seen else 0,
    }
    print(json.dumps(line), flush=True)


def main(path: Path, folder: Path, rounds: int, seed: int) -> None:
    torch.set_num_threads(1)  # a fork of a process with a thread pool would hang
    pair = load_pair(path)
    rng = random.Random(seed)
    reference = in_child(folder / "reference", pair)
    if os.waitpid(reference, 0)[1] != 0:
        raise RuntimeError("the reference recording failed")
    for number in range(rounds):
        kill_once(folder / f"round-{number}", pair, number % 4 != 0, rng)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
