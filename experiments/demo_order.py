"""Why the demo's real runs may rank drafting otherwise than the simulated comparison."""

import json
from pathlib import Path

from experiments.provenance import read_run_file
from experiments.winner import WINNER_FILE, read_winner

METRICS = "metrics.json"


def other_order(folder: Path, plain: Path, drafting: Path) -> str | None:
    """A line where the run with a draft, in `drafting`, was faster than the winner without one, in
    `plain`; None where the order is the simulated one, or one of them measured nothing."""
    files = [plain / METRICS, drafting / METRICS]
    if not all(path.is_file() for path in files):
        return None
    without, with_draft = (json.loads(path.read_text(encoding="utf-8")) for path in files)
    speeds = [one["tokens_per_second"] for one in (without, with_draft)]
    if not speeds[1] > speeds[0]:
        return None
    simulated = read_winner(folder / WINNER_FILE).hardware
    measured = read_run_file(plain)["config"]["hardware"]["name"]
    tokens = [one["committed_tokens"] for one in (without, with_draft)]
    return (
        f"note: drafting was the faster here, {speeds[1]:.1f} against {speeds[0]:.1f} tokens per "
        f"second, but the slower in the comparison. That one has the costs of {simulated}, these "
        f"runs those of {measured} and of this computer, and only {tokens[1]} and {tokens[0]} "
        "tokens were counted, so they cannot refute it; spac validate compares like with like"
    )
