"""`spac tune`: fit and held out, the same trials for the same seed, killed and continued."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import optuna
import pandas as pd
import pytest
import yaml
from optuna.trial import FrozenTrial, TrialState

from experiments import tuning_study
from experiments.tuning_outcome import Outcome, verdict
from experiments.tuning_study import FINISHED, STARTUP, join_study
from tests.experiments.conftest import Spac
from traces.synthetic import SyntheticShape, random_dense, synthetic_manifest
from traces.writer import TraceWriter

SHAPE = SyntheticShape(layers=3, experts=16, top_k=2, requests=8, tokens=12, lookahead=1)
BASE = ("hardware=rtx4090", "model=trace", "draft=pair", "cache_ratio=0.3", "pictures=false")


@pytest.fixture(scope="session")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tuned") / "dense"
    with TraceWriter(path, synthetic_manifest(SHAPE, "dense", 4)) as writer:
        writer.append(random_dense(SHAPE, 4, seed=1))
    return path


def words(trace: Path, *more: str, policy: str = "spac", trials: int = 14) -> list[str]:
    return ["tune", f"trace={trace}", *BASE, f"policy={policy}", f"trials={trials}", *more]


def trials_in(folder: str) -> pd.DataFrame:
    return pd.read_parquet(Path("outputs/tune") / folder / "trials.parquet")


def test_everything_is_written_and_the_policy_plays(spac: Spac, trace: Path) -> None:
    drawn = [word.replace("pictures=false", "pictures=true") for word in words(trace, trials=12)]
    done = spac(*drawn, "parameters=[gamma,up,quota]")
    assert done.code == 0, done.err
    folder = Path("outputs/tune/latest")
    assert {path.name for path in folder.iterdir()} == {
        "run.json", "study.db", "trials.csv", "trials.parquet", "policy.yaml", "sensitivity.png",
    }  # fmt: skip
    trials = trials_in("latest")
    assert len(trials) == 12 and trials.loc[0, "gain"] == 0.0  # the default comes first
    assert set(trials.columns) > {"gamma", "up", "quota"} and "down" not in trials
    tuned = yaml.safe_load((folder / "policy.yaml").read_text())
    best = trials[trials["whole"]].sort_values("gain", kind="stable").iloc[-1]
    assert tuned["evidence"]["gain_on_fit"] == pytest.approx(best["gain"], abs=1e-6)
    assert (tuned["parameters"]["up"], tuned["gamma"]) == (best["up"], best["gamma"])
    assert "fit" in done.out and "held out" in done.out
    played = spac("simulate", f"trace={trace}", "policy=outputs/tune/latest", *BASE[:-1])
    assert played.code == 0 and "spac-tuned" in played.out


def test_the_first_request_of_a_side_is_not_counted(spac: Spac, trace: Path) -> None:
    assert spac(*words(trace, "held_out=0.25", "requests=8", trials=1)).code == 0
    first = trials_in("latest")
    assert first.loc[0, "requests"] == 5  # 6 fit requests, the first is warm-up


def test_the_same_seed_gives_the_same_trials(spac: Spac, trace: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        assert spac(*words(trace, f"study={name}", f"seed={seed}")).code == 0
    pd.testing.assert_frame_equal(trials_in("a"), trials_in("b"))
    assert not trials_in("a").equals(trials_in("c"))


def test_a_continued_study_is_the_uninterrupted_one(spac: Spac, trace: Path) -> None:
    assert spac(*words(trace, "study=whole")).code == 0
    assert spac(*words(trace, "study=parts", trials=6)).code == 0
    assert len(trials_in("parts")) == 6
    assert spac(*words(trace, "study=parts")).code == 0
    pd.testing.assert_frame_equal(trials_in("parts"), trials_in("whole"))
    policies = [
        yaml.safe_load(Path(f"outputs/tune/{name}/policy.yaml").read_text()) | {"name": ""}
        for name in ("parts", "whole")
    ]
    assert policies[0] == policies[1]


def test_a_killed_study_goes_on(spac: Spac, trace: Path) -> None:
    assert spac(*words(trace, "study=whole", trials=25)).code == 0
    command = words(trace, "study=night", trials=25)
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments", *command],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    study = Path("outputs/tune/night/study.db")
    while not study.exists():
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        time.sleep(0.01)
    time.sleep(1.0)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert spac(*command).code == 0
    pd.testing.assert_frame_equal(trials_in("night"), trials_in("whole"))


MANY = 120  # enough for a second process to start and to play some of them
FEW = 40


def kept_trials(name: str) -> list[FrozenTrial]:
    return join_study(Path("outputs/tune") / name, "none").get_trials(deepcopy=False)


def ended_trials(name: str) -> int:
    """Without opening it as a study, which takes time from the process that plays."""
    path = Path("outputs/tune") / name / "study.db"
    if not path.exists():
        return 0
    states = "select count(*) from trials where state in ('COMPLETE', 'PRUNED')"
    with closing(sqlite3.connect(path)) as study, suppress(sqlite3.OperationalError):
        return int(study.execute(states).fetchone()[0])
    return 0  # its tables are not there yet


def test_two_processes_play_trials_of_one_study(spac: Spac, trace: Path) -> None:
    done = spac(*words(trace, "study=pair", "workers=2", trials=MANY))
    assert done.code == 0, done.err
    trials, table = kept_trials("pair"), trials_in("pair")
    assert len(trials) == len(table) == MANY
    assert table.loc[0, "gain"] == 0.0  # the default comes first
    ends = [trial.datetime_complete for trial in trials]
    together = [
        trial.number
        for trial, end in zip(trials[1:], ends, strict=False)
        if trial.datetime_start < end  # type: ignore[operator]
    ]
    assert together, "no two trials were played at the same time"
    assert not table["whole"].all() and table["whole"].any()  # slow trials are stopped early
    drawn = [tuple(trial.params.items()) for trial in trials[1:STARTUP]]
    assert len(set(drawn)) == len(drawn), "two processes drew the same"
    best = table[table["whole"]]["gain"].max()
    tuned = yaml.safe_load(Path("outputs/tune/pair/policy.yaml").read_text())
    assert tuned["evidence"]["gain_on_fit"] == pytest.approx(best, abs=1e-6)


def test_a_killed_search_of_two_processes_goes_on(spac: Spac, trace: Path) -> None:
    command = words(trace, "study=night", "workers=2", trials=FEW)
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments", *command],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    while ended_trials("night") < FEW // 4:
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        time.sleep(0.1)
    process.kill()  # its worker ends itself
    process.communicate()
    before = {trial.number: trial for trial in kept_trials("night") if trial.state.is_finished()}
    assert before and len(before) < FEW
    assert spac(*command).code == 0
    after = {trial.number: trial for trial in kept_trials("night")}
    assert all(after[number] == trial for number, trial in before.items())
    ended = [one for one in after.values() if one.state in FINISHED]
    assert len(ended) == len(trials_in("night")) == FEW
    others = [one for one in after.values() if one.state not in FINISHED]
    assert len(others) <= 2 and all(one.state == TrialState.FAIL for one in others)


def test_slow_trials_are_stopped_early(spac: Spac, trace: Path) -> None:
    for pruner in ("median", "none"):
        done = spac(*words(trace, f"pruner={pruner}", f"study={pruner}", trials=30))
        assert done.code == 0, done.err
    pruned, whole = trials_in("median"), trials_in("none")
    assert whole["whole"].all() and set(whole["requests"]) == {4}
    stopped = pruned[~pruned["whole"]]
    assert len(stopped) and (stopped["requests"] < 4).all()


def test_the_study_names_what_was_changed(spac: Spac, trace: Path) -> None:
    assert spac(*words(trace, "study=a", trials=2)).code == 0
    error = spac(*words(trace, "study=a", "ranges.up=[1,3]", trials=3)).error
    assert "study a was begun with other settings: ranges.up was [1, 6], is [1, 3]" in error
    Path("outputs/tune/a/study.db").write_bytes(b"no database" * 100)
    assert "cannot be read as a study" in spac(*words(trace, "study=a", trials=2)).error


@pytest.mark.parametrize(
    "more,named",
    [
        (("policy=belady",), "sees the future"),
        (("policy=all_cpu", "ranges.gamma=null"), "no parameter with a range"),
        (("policy=spac", "ranges.up=[0,4]"), "ranges.up: Inertia.up=0: must be at least 1"),
        (("policy=spac", "ranges.up=[4,4]"), "nothing to search"),
        (("policy=spac", "ranges.up=4"), "two numbers or a list"),
        (("policy=spac", "ranges.upp=[1,4]"), "did you mean"),
        (("policy=spac", "parameters=[upp]"), "did you mean up"),
        (("policy=spac", "held_out=0.9"), "leave 1 on one side"),
        (("policy=spac", "held_out=0"), "must be above 0"),
        (("policy=spac", "pruner=mean"), "there are median, quartile, none"),
        (("policy=spac", "engine=reference"), "compiled engine"),
        (("policy=[spac,lru_cpu]",), "tune takes one"),
        (("policy=spac", "trials=0"), "trials=0: must be 1..1000000"),
        (("policy=spac", "workers=0"), "workers=0: must be at least 1"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    spac: Spac, trace: Path, more: tuple[str, ...], named: str
) -> None:
    given = [word for word in words(trace, trials=2) if not word.startswith("policy")]
    given = [one for one in given if one.partition("=")[0] not in {w.split("=")[0] for w in more}]
    assert named in spac(*given, *more).error
    assert not Path("outputs/tune").exists()


@pytest.mark.parametrize(
    "fit,held,said",
    [
        (1.10, 1.09, "Tuned: +10.0% on the fit requests, +9.0% on those held out"),
        (1.10, 1.02, "Warning: most of the gain does not survive"),
        (1.10, 0.98, "Warning: the gain does not survive: +10.0% on the fit requests, -2.0%"),
        (1.00, 1.10, "Nothing of 7 trials is faster than the default"),
    ],
)
def test_a_gain_that_does_not_survive_is_a_warning(fit: float, held: float, said: str) -> None:
    outcome = Outcome(None, {}, 7, [[100.0]], [[100 * fit]], [[50.0]], [[50 * held]])  # type: ignore[arg-type]
    assert verdict(outcome).startswith(said)


def test_evidence_is_plain_data(spac: Spac, trace: Path) -> None:
    assert spac(*words(trace, trials=1)).code == 0
    content = yaml.safe_load(Path("outputs/tune/latest/policy.yaml").read_text())
    assert json.loads(json.dumps(content)) == content
    assert content["evidence"]["trials"] == 1 and len(content["evidence"]["source_hash"]) == 16


@pytest.mark.parametrize("trials", [-1, 10**18])
def test_numbers_of_trials(spac: Spac, trace: Path, trials: int) -> None:
    assert spac(*words(trace, trials=trials)).error == f"trials={trials}: must be 1..1000000"


def test_times_that_cannot_be_are_refused_before_there_is_a_folder(
    spac: Spac, trace: Path, tmp_path: Path
) -> None:
    given = [word for word in words(trace) if not word.startswith("model=")]
    assert "ns for one operation" in spac(*given, "model.layers=1000000000000000000").error
    assert not (tmp_path / "outputs").exists()


def test_a_range_that_is_not_searched(spac: Spac, trace: Path, tmp_path: Path) -> None:
    for more in (["parameters=[up]", "ranges.down=[1,3]"], ["ranges.decay=[0.6,0.7]"]):
        assert f"{more[-1]} changes nothing here" in spac(*words(trace, *more)).error
    assert not (tmp_path / "outputs").exists()


def test_a_database_that_another_process_holds(
    spac: Spac, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning_study, "SECONDS_FOR_LOCK", 0.05)
    path = Path("outputs/tune/night/study.db")
    holders: list[sqlite3.Connection] = []

    def held(folder: Path, pruner: str) -> optuna.Study:
        study = tuning_study.open_study(folder, pruner)
        holders.append(sqlite3.connect(path))
        holders[0].execute("BEGIN EXCLUSIVE")
        return study

    search = words(trace, "parameters=[up]", "study=night", trials=2)
    with monkeypatch.context() as patch:
        patch.setattr("experiments.tune.open_study", held)
        error = spac(*search).error
    assert spac(*search).error == error, "the same where it is opened"
    holders[0].close()
    assert error.startswith(f"{path}: database is locked (SQLITE_BUSY)")
    assert spac(*search).code == 0, "the same command goes on"
