"""Long traces: resident memory does not grow with them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.benchmarks.scale import main, seconds_per_token

ROOT = Path(__file__).parents[2]
GIB = 1 << 30


def test_tenths_are_cut_by_tokens_and_the_first_request_is_left_out() -> None:
    steady = [(tokens, 9.0 + tokens / 100) for tokens in range(100, 1001, 50)]
    marks = [(0, 0.0), (50, 9.0), *steady]
    assert seconds_per_token(marks, 0.9, 1.0) == pytest.approx(0.01)
    slower = [(tokens, time + max(0, tokens - 900) / 50) for tokens, time in marks]
    assert seconds_per_token(slower, 0.9, 1.0) == pytest.approx(0.03)
    assert seconds_per_token(slower, 0.0, 0.1) == pytest.approx((10.0 - 9.0) / 50)


@pytest.mark.parametrize("arguments", [["5"], ["many"], ["20000", "spak"]])
def test_bad_arguments_take_one_line(arguments: list[str], capsys) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: ") and told.count("\n") == 1 and "usage" in told


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["spac"])
def test_a_million_tokens_fit_in_a_gibibyte_and_a_half(policy: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "experiments.benchmarks.scale", "1000000", policy],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    figures = json.loads(done.stdout)
    assert figures["tokens"] >= 1_000_000 and figures["passes"] > 100_000
    assert figures["simulated_tokens_per_second"] > 0
    assert figures["peak_resident_bytes"] < 1.5 * GIB
    # How constant the cost per token is, is a figure of the benchmark: clocks decide no test.
    print(done.stdout)
