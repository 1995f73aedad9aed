"""Every command and every number of the README is run here."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from experiments.readme import RESULTS, ROOT, between_markers, results_section

README = (ROOT / "README.md").read_text()
KEY = ["workload", "policy"]


def shell_commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


def test_the_two_commands_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    targets = [line.split()[1] for line in shell_commands() if line.startswith("make ")]
    assert targets == ["demo", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("readme")


TOUR = [line for line in shell_commands() if line.startswith("spac ")]


def test_the_tour_is_not_empty():
    assert len(TOUR) >= 8


@pytest.mark.parametrize("command", TOUR)
def test_each_command_of_the_tour_runs(command, folder):
    """In the order of the README: later commands read what earlier ones wrote."""
    words = shlex.split(command)[1:]
    done = subprocess.run(
        [sys.executable, "-m", "experiments", *words],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_the_python_example_runs():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert int(done.stdout.split()[0]) > 200


def test_the_printed_results_are_those_of_the_committed_table():
    rows = pd.read_csv(RESULTS / "table.csv")
    assert between_markers(README) == results_section(rows)


def test_the_committed_table_is_what_the_simulator_gives(folder):
    """Two policies on one workload, played again with the settings of the table."""
    kept = pd.read_csv(RESULTS / "table.csv")
    chosen = ["spac", "lru_cpu"]
    requests = int(kept["requests"].iloc[0]) + 1  # the first is warm-up and not counted
    words = [
        "compare", "trace=[maths]", f"policy=[{','.join(chosen)}]", "no_speculation=[lru_cpu,ours]",
        f"requests={requests}", "pictures=false", f"outputs={folder / 'again'}", "workers=1",
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "experiments", *words],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    again = pd.read_csv(folder / "again" / "compare" / "latest" / "table.csv")
    columns = [*KEY, "tokens_per_second", "hit_rate_per_token", "bytes_copied", "passes"]
    merged = again[columns].merge(kept[columns], on=KEY, suffixes=("", "_kept"))
    assert len(merged) == len(again) == 4
    for column in columns[2:]:
        assert (merged[column] == merged[f"{column}_kept"]).all(), merged


def test_links_and_pictures_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert Path(ROOT / target).exists(), target
