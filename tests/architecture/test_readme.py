"""Every command and every number of the README is run here."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from experiments.bench_report import goals_table
from experiments.commands import COMMANDS, options
from experiments.readme import (
    BENCH,
    BENCH_PART,
    RESULTS,
    ROOT,
    VALIDATION,
    VALIDATION_PART,
    between_markers,
    results_section,
    validation_section,
)

README = (ROOT / "README.md").read_text()
KEY = ["workload", "policy"]
SLOW = ("spac validate",)
LONGEST = 200


def shell_commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


def test_the_two_commands_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    targets = [line.split()[1] for line in shell_commands() if line.startswith("make ")]
    assert targets == ["demo", "test"]
    for target in {*targets, *re.findall(r"`make ([\w-]+)`", README)}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_it_is_short_and_names_what_exists():
    assert len(README.splitlines()) <= LONGEST
    words = re.findall(r"`spac ([a-z-]+)", README) + re.findall(r"^spac ([a-z-]+)", README, re.M)
    assert set(words) <= set(COMMANDS)
    assert len(options("policy")) > 30, "the README says over thirty"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the tour is taken: an empty folder, but for the template that it copies."""
    place = tmp_path_factory.mktemp("readme")
    (place / "policies").symlink_to(ROOT / "policies")
    spac = place / "bin" / "spac"
    spac.parent.mkdir()
    spac.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m experiments "$@"\n')
    spac.chmod(0o755)
    return place


def in_shell(line, folder):
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", line], cwd=folder, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL, env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


TOUR = [line for line in shell_commands() if not line.startswith("make ")]


def test_the_tour_is_not_empty():
    assert len(TOUR) >= 15


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(line, marks=[pytest.mark.slow] if line.startswith(SLOW) else [])
        for line in TOUR
    ],
)
def test_each_command_of_the_tour_runs(command, folder):
    """In the order of the README: later commands read what earlier ones wrote."""
    done = in_shell(command, folder)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    if ">" in command:
        written = folder / command.rsplit(">", 1)[1].strip()
        assert written.read_text().strip()


def test_the_tour_leaves_nothing_outside_outputs(folder):
    """Beside the folder itself stands only what the fixture put there."""
    assert {path.name for path in folder.iterdir()} <= {"policies", "bin", "outputs"}


def test_the_printed_results_are_those_of_the_committed_table():
    rows = pd.read_csv(RESULTS / "table.csv")
    assert between_markers(README) == results_section(rows)


def test_the_printed_validation_is_the_committed_one():
    clocks = json.loads(VALIDATION.read_text())
    assert between_markers(README, VALIDATION_PART) == validation_section(clocks)


def test_the_printed_speeds_are_those_of_the_committed_bench():
    result = json.loads(BENCH.read_text())
    assert between_markers(README, BENCH_PART) == goals_table(result)
    assert result["size"] == "full"
    assert not result["left_out"]


def test_what_is_said_of_the_cells_holds_for_their_table():
    """All but one: the row on our policy, in words."""
    cells = pd.read_csv(ROOT / "experiments" / "results" / "cells" / "table.csv")
    assert "In every cell held out" in README
    assert (cells["ratio"] >= 0.99).all()
    assert "in all but one if they get the best window" in README
    assert (cells["ratio_tuned"] < 0.99).sum() == 1


def test_no_other_number_is_a_measurement():
    """Percentages and factors stand in the generated parts only, but for the setting's 17 %."""
    prose = README
    for part in ("results", VALIDATION_PART, BENCH_PART):
        prose = prose.replace(between_markers(README, part), "")
    assert re.findall(r"[\d.]+ ?%|\b[\d.]+ times\b", prose) == ["17 %"]


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
