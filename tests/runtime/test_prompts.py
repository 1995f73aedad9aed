from pathlib import Path

import pytest

from policies.errors import UserError
from runtime import prompts as module
from runtime.prompts import Prompt, check_prompts, read_prompts, shipped_prompts, shipped_workloads


def encode(text: str) -> list[int]:
    return [len(word) for word in text.split()]


def write(folder: Path, *lines: str) -> Path:
    file = folder / "prompts.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_reading(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        '{"id": "a", "text": "ignored", "tokens": [4, 5]}',
        "",
        '{"id": 7, "text": "one three"}',
        '{"text": "x", "tokens": 12}',
    )
    assert read_prompts(file, encode) == [
        Prompt("a", (4, 5)),
        Prompt("7", (3, 5)),
        Prompt("line 4", (1,)),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"prompts.jsonl:2: not valid JSON"),
        ("[1]", r"prompts.jsonl:2: expected a JSON object"),
        ('{"id": 1}', r'prompts.jsonl:2: needs "text"'),
        ('{"text": 5}', r'prompts.jsonl:2: needs "text"'),
        ('{"tokens": [1, "2"]}', r"must be whole numbers"),
        ('{"tokens": [true]}', r"must be whole numbers"),
        ('{"tokens": [1.5]}', r"must be whole numbers"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, line: str, message: str) -> None:
    file = write(tmp_path, '{"text": "fine"}', line)
    with pytest.raises(UserError, match=message):
        read_prompts(file, encode)


def test_missing_and_empty_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_prompts(tmp_path / "none.jsonl", encode)
    with pytest.raises(UserError, match="no prompts in it"):
        read_prompts(write(tmp_path, ""), encode)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ((), "empty"),
        ((1, 64), "token 64 in a vocabulary of 64"),
        ((1, -1), "vocabulary of 64"),
        (tuple(range(41)), "41 tokens and up to 60 more do not fit the model's 100 positions"),
    ],
)
def test_prompts_that_do_not_fit(tokens: tuple[int, ...], message: str) -> None:
    good = Prompt("good", tuple(range(40)))
    check_prompts([good], 64, 60, 100)
    with pytest.raises(UserError, match=message):
        check_prompts([good, Prompt("bad", tokens)], 64, 60, 100)


def test_shipped_workloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHIPPED_PROMPTS", tmp_path)
    with pytest.raises(UserError, match="shipped are none"):
        shipped_prompts("code")
    for name in ("maths", "code"):
        (tmp_path / f"{name}.jsonl").touch()
    assert shipped_workloads() == ("code", "maths")
    assert shipped_prompts("code") == tmp_path / "code.jsonl"
    with pytest.raises(UserError, match="workload=chat is unknown; shipped are code, maths"):
        shipped_prompts("chat")
