"""The template of a user's policy, copied to a folder of its own: it passes the suite and plays in
a comparison from there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from policies import template
from policies.conformance import check_policy
from tests.experiments.conftest import Spac

ROOT = Path(__file__).parents[2]
SMALL = ("model=trace", "draft=pair", "cache_ratio=0.3", "gamma=2", "pictures=false")


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """my_own.py, where Python does not look by itself."""
    shutil.copy(template.__file__, tmp_path / "my_own.py")
    return tmp_path


def installed(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command as an installed script runs it, with `folder` as the working directory only."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "experiments", *words], cwd=folder, capture_output=True,
        text=True, check=False, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def test_the_copy_is_checked_and_compared(copied: Path, dense_trace: Path) -> None:
    checked = installed(copied, "policies", "check=my_own.MyPolicy")
    assert checked.returncode == 0, checked.stderr
    assert "decisions checked, every rule kept" in checked.stdout
    done = installed(
        copied, "compare", f"trace={dense_trace}", "policy=[my_own.MyPolicy,lru_cpu]",
        "no_speculation=null", "workers=2", *SMALL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = pd.read_parquet(copied / "outputs/compare/latest/table.parquet").set_index("policy")
    own = rows.loc["my_own.MyPolicy"]
    assert own["engine"] == "reference" and own["prefetches_useful"] > 0
    assert own["hit_rate_per_token"] > 0 and own["bound_seconds"] < own["decode_seconds"]


def test_parameters_of_the_copy_are_a_grid(copied: Path, spac: Spac, dense_trace: Path) -> None:
    outcome = spac(
        "compare", f"trace={dense_trace}", "policy=my_own.MyPolicy", "policy.fade=[0.5,0.9]",
        "no_speculation=null", "workers=1", *SMALL,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    rows = pd.read_parquet("outputs/compare/latest/table.parquet")
    assert set(rows["policy"]) == {"my_own.MyPolicy fade=0.5", "my_own.MyPolicy fade=0.9"}
    assert str(copied) not in sys.path


def test_the_template_keeps_every_rule() -> None:
    assert check_policy(template.MyPolicy) > 250


def test_a_broken_copy_is_refused_by_the_rule_it_breaks(copied: Path) -> None:
    path = copied / "my_own.py"
    path.write_text(path.read_text().replace("[: view.credits]", ""))
    error = installed(copied, "policies", "check=my_own.MyPolicy")
    assert error.returncode == 2 and "more prefetches than credits" in error.stderr
    path.write_text(path.read_text().replace("self.fade = fade", "self.fade = [fade]").replace(
        "self.fade * score", "self.fade.append(1) or self.fade[0] * score"
    ))  # fmt: skip
    error = installed(copied, "policies", "check=my_own.MyPolicy")
    assert error.returncode == 2 and len(error.stderr.strip().splitlines()) == 1


def test_what_is_nowhere_is_named(spac: Spac) -> None:
    assert "cannot import nowhere.MyPolicy" in spac("policies", "check=nowhere.MyPolicy").error
