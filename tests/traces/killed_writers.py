"""Program of test_trace_kill: writes traces in children that it kills at random moments.

Arguments: folder, number of children, seed. Prints one JSON line per child: whether the kill fell
inside the write of a part, and how many parts had been written before. Children are forked, so that
the slow imports happen once.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from traces.synthetic import SyntheticShape, random_dense, synthetic_manifest
from traces.writer import TraceWriter

SHAPE = SyntheticShape(requests=8, tokens=6)
GAMMA = 2
WRITE_SECONDS = 0.01


def write_slowly(path: Path, events: int) -> None:
    """Write a trace, one part per request; the pipe tells when a write begins and ends."""

    def sync(descriptor: int) -> None:
        is_part = "part-" in os.readlink(f"/proc/self/fd/{descriptor}")
        os.write(events, b"p" if is_part else b"m")
        time.sleep(WRITE_SECONDS)
        os.write(events, b"P" if is_part else b"M")

    batch = random_dense(SHAPE, GAMMA, seed=0)
    manifest = synthetic_manifest(SHAPE, "dense", GAMMA)
    with TraceWriter(path, manifest, rows_per_part=1, sync=sync) as writer:
        for request in range(SHAPE.requests):
            writer.append(batch.take(batch.request == request))


def kill_one(path: Path, aim_at_part: bool, generator: np.random.Generator) -> dict[str, object]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        write_slowly(path, writer)
        os._exit(0)
    os.close(writer)
    seen = b""
    if aim_at_part:
        wanted = int(generator.integers(1, SHAPE.requests))
        while seen.count(b"p") < wanted:
            seen += os.read(reader, 1)
        time.sleep(generator.uniform(0, 0.6 * WRITE_SECONDS))
    else:
        time.sleep(generator.uniform(0, 2 * WRITE_SECONDS * SHAPE.requests))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while chunk := os.read(reader, 4096):
        seen += chunk
    os.close(reader)
    begun, finished = seen.count(b"p"), seen.count(b"P")
    return {"inside_part": begun > finished, "begun": begun, "finished": finished}


def main() -> None:
    folder, count, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    generator = np.random.default_rng(seed)
    for index in range(count):
        outcome = kill_one(folder / f"{index:02d}", index % 3 != 2, generator)
        print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main()
