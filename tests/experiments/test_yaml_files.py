"""Damaged and foreign YAML files, wherever one can be named: a line that names the file."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from experiments.decision_file import read_decision_file
from experiments.policy_file import read_policy
from experiments.profile_file import read_hardware
from experiments.studies.cells_file import CELLS_FILE, KEYS, read_cells
from experiments.studies.paper_fit import FITTED_FILE, read_fitted
from experiments.winner import read_winner
from policies.errors import UserError

READERS = (read_decision_file, read_policy, read_hardware, read_cells, read_fitted, read_winner)
DAMAGED = {
    "empty": b"", "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "zeros": bytes(1000),
    "foreign bytes": b"name: \xf2\xff", "another encoding": "{}".encode("utf-16"),
    "deep": b"[" * 100_000, "open": b"{a: 1", "a list": b"[1, 2]", "a number": b"1e999",
    "other keys": b"{1: 2, a: 3}", "a tag": b"!!python/object/apply:os.getcwd []",
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_what_is_no_such_file(reader, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"mine\.yaml"):
        reader(path)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        *((key, "3", f"{key}=3: must be a list") for key in KEYS),
        ("tuned", "null", "tuned=null: must be a list"),
        ("traces", "[abc]", "abc: a trace needs keys with values"),
        ("tuned", "[[spac]]", "unknown policy in tuned"),
        ("traces", "[{model: [1], draft: pair, requests: 2, trace: code}]", "unknown model"),
    ],
)
def test_wrong_entries_of_a_file_of_cells(key: str, value: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "cells.yaml"
    text: Sequence[str] = CELLS_FILE.read_text(encoding="utf-8").splitlines()
    begin = next(n for n, line in enumerate(text) if line.startswith(f"{key}:"))
    end = next((n for n in range(begin + 1, len(text)) if text[n][:1].isalpha()), len(text))
    path.write_text("\n".join([*text[:begin], f"{key}: {value}", *text[end:]]))
    with pytest.raises(UserError) as error:
        read_cells(path)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [("acceptance: 0.8359", "acceptance: 2"), ("memory: 0.99409", "memory: abc"),
     ("keep: 0.0879", "keep: .nan"), ("cpu_bytes_per_second: 6", "cpu_bytes_per_second: -6")],
)  # fmt: skip
def test_fitted_values_that_cannot_be(old: str, new: str, tmp_path: Path) -> None:
    text = FITTED_FILE.read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "fitted.yaml").write_text(text.replace(old, new))
    with pytest.raises(UserError, match=f"{new.partition(':')[0]}=.*: must be a number from"):
        read_fitted(tmp_path / "fitted.yaml")


def test_the_kept_files_are_read() -> None:
    assert read_cells(CELLS_FILE).traces and read_fitted().acceptance > 0
