"""The Optuna study of a search, in SQLite, continued after whatever stopped it."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from policies.errors import UserError

STUDY_FILE = "study.db"
NAME = "tune"
STARTUP = 10  # trials drawn at random, and finished ones that a pruner needs
SECONDS_FOR_LOCK = 60  # of the database, which one process at a time writes
PRUNERS = ("median", "quartile", "none")
# Primary result codes of SQLite; one that is extended holds its primary one in the lowest byte.
MACHINE_FAULTS = (
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN,
)  # fmt: skip
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)


def check_pruner(pruner: object) -> str:
    """The key pruner=; UserError if there is no such one."""
    if pruner not in PRUNERS:
        raise UserError(f"pruner={pruner}: there are {', '.join(PRUNERS)}")
    return str(pruner)


def open_study(folder: Path, pruner: str) -> optuna.Study:
    """The study kept in `folder`, new or as it is; UserError if the file is none. A trial that was
    under way when a process was killed is marked as failed and counts for nothing."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    path = folder / STUDY_FILE
    try:
        study = optuna.create_study(
            storage=_storage(path), study_name=NAME, direction="maximize", pruner=_pruner(pruner),
            load_if_exists=True,
        )  # fmt: skip
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            study.tell(trial.number, state=TrialState.FAIL)
    except Exception as error:  # whatever the database says of a file that is no study
        if machine_fault(error) is not None:
            raise
        raise UserError(
            f"{path}: cannot be read as a study ({type(error).__name__}); begin another study="
        ) from error
    return study


@contextmanager
def database_of(folder: Path) -> Iterator[None]:
    """Inside, a study's database that is locked, or has no room or leave to write, is a UserError.
    Around a trial as well as around a search: an error from another process has lost its cause."""
    try:
        yield
    except Exception as error:
        said = machine_fault(error)
        if said is None:
            raise
        raise UserError(
            f"{folder / STUDY_FILE}: {said}; end what holds it, or make room. What is finished is "
            "kept, and a search with study=NAME goes on by the same command"
        ) from error


def machine_fault(error: BaseException | None) -> str | None:
    """What SQLite says where the machine and not the file is at fault; None where it is not."""
    while error is not None:
        if isinstance(error, sqlite3.Error) and error.sqlite_errorcode & 0xFF in MACHINE_FAULTS:
            return f"{error} ({error.sqlite_errorname})"
        error = error.__cause__
    return None


def join_study(folder: Path, pruner: str) -> optuna.Study:
    """The study that another process has opened in `folder`, to play trials for it."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = _storage(folder / STUDY_FILE)
    return optuna.load_study(study_name=NAME, storage=storage, pruner=_pruner(pruner))


def finished(study: optuna.Study) -> list[FrozenTrial]:
    """Trials that ended, by themselves or at a request."""
    return study.get_trials(deepcopy=False, states=FINISHED)


def best_values(study: optuna.Study) -> Mapping[str, Any]:
    """Parameters of the fastest trial; the earliest of equal ones."""
    done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return dict(max(done, key=lambda trial: (trial.value or 0.0, -trial.number)).params)


def _storage(path: Path) -> optuna.storages.RDBStorage:
    wait = {"connect_args": {"timeout": SECONDS_FOR_LOCK}}
    return optuna.storages.RDBStorage(f"sqlite:///{path}", engine_kwargs=wait)


def _pruner(name: str) -> optuna.pruners.BasePruner:
    if name == "none":
        return optuna.pruners.NopPruner()
    # Optuna's percentile is that of trials kept.
    kept = 50.0 if name == "median" else 75.0
    return optuna.pruners.PercentilePruner(kept, n_startup_trials=STARTUP, n_warmup_steps=1)
