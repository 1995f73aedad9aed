"""Output folders count up, also between processes, and nothing is overwritten."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from experiments.outputs import new_folder, removed_if_unused
from policies.errors import UserError


def test_folders_count_up_and_latest_follows(tmp_path: Path) -> None:
    first, second = (new_folder(tmp_path, "compare") for _ in range(2))
    assert (first.name, second.name) == ("1", "2")
    assert (tmp_path / "compare" / "latest").resolve() == second.resolve()


def test_other_commands_and_other_files_do_not_disturb(tmp_path: Path) -> None:
    new_folder(tmp_path, "demo")
    (tmp_path / "compare").mkdir()
    (tmp_path / "compare" / "notes").mkdir()
    (tmp_path / "compare" / "41").mkdir()
    assert new_folder(tmp_path, "compare").name == "42"


def test_simultaneous_runs_get_different_folders(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: new_folder(tmp_path, "run"), range(40)))
    assert len({folder.name for folder in folders}) == 40
    assert (tmp_path / "run" / "latest").is_symlink()


def test_a_kept_folder_is_not_touched(tmp_path: Path) -> None:
    first = new_folder(tmp_path, "compare")
    (first / "table.csv").write_text("old")
    new_folder(tmp_path, "compare")
    assert (first / "table.csv").read_text() == "old"


def test_a_run_that_left_nothing_leaves_no_folder(tmp_path: Path) -> None:
    kept = new_folder(tmp_path, "run")
    with pytest.raises(UserError), removed_if_unused(new_folder(tmp_path, "run")) as refused:
        (refused / "run.json").write_text("{}")
        raise UserError("too long")
    assert not refused.exists()
    assert (tmp_path / "run" / "latest").resolve() == kept.resolve()


def test_the_only_folder_goes_with_its_link(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), removed_if_unused(new_folder(tmp_path, "run")):
        raise KeyboardInterrupt
    assert list((tmp_path / "run").iterdir()) == []


def test_what_a_failed_run_wrote_is_kept(tmp_path: Path) -> None:
    with pytest.raises(UserError), removed_if_unused(new_folder(tmp_path, "run")) as folder:
        (folder / "runlog").mkdir()
        raise UserError("out of memory in mid-run")
    assert (folder / "runlog").is_dir()
    assert (tmp_path / "run" / "latest").resolve() == folder.resolve()


def test_another_process_that_was_faster_keeps_the_link(tmp_path: Path) -> None:
    with pytest.raises(UserError), removed_if_unused(new_folder(tmp_path, "run")):
        newer = new_folder(tmp_path, "run")
        raise UserError("refused meanwhile")
    assert (tmp_path / "run" / "latest").resolve() == newer.resolve()
