"""What the user says about a file: its format where several fit, and what it does not tell."""

from pathlib import Path

import pandas as pd
import pytest
from foreign_files import (
    GENERATED,
    GIVEN,
    PROMPT,
    policylang_columns,
    policylang_parquet,
    routed,
    take,
    vllm_response,
    write_json,
)

from policies.errors import UserError
from traces.importers import import_trace
from traces.importers.routing import Given

TEXT = routed(PROMPT + GENERATED)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Given(), "does not name the model, give model="),
        (
            Given(name="m"),
            r"how many experts a layer of m has \(at least \d occur\), give experts=",
        ),
        (Given(name="m", experts=8), "bytes of an expert of m unknown, give expert_bytes="),
        (Given(name="m", experts=1, expert_bytes=1), "top_k 2 > experts 1"),
    ],
)
def test_what_nobody_says_about_the_model_is_asked_for(
    given: Given, message: str, tmp_path: Path
) -> None:
    source = policylang_parquet(tmp_path / "a.parquet", policylang_columns(TEXT))
    with pytest.raises(UserError, match=message):
        import_trace(source, tmp_path / "trace", given=given)


def test_router_softmax_tells_the_number_of_experts(tmp_path: Path) -> None:
    columns = policylang_columns(TEXT)
    table = pd.DataFrame(columns | {"router_softmax": [[1 / 16] * 16] * len(columns["phase"])})
    table.to_parquet(tmp_path / "a.parquet")
    given = Given(name="m", expert_bytes=1)
    trace = import_trace(tmp_path / "a.parquet", tmp_path / "trace", given=given)
    assert trace.manifest.model.experts == 16


def test_an_ambiguous_file_is_not_guessed(tmp_path: Path) -> None:
    """A file that answers to two formats: the user says which, and then it goes through."""
    both = vllm_response(TEXT[:-1]) | {"router_data": []}
    source = write_json(tmp_path / "a.json", both)
    with pytest.raises(UserError, match=r"could be gpt-oss-fingerprint or vllm; .*format="):
        take(source, tmp_path / "trace")
    assert len(take(source, tmp_path / "trace", "vllm").load()) == PROMPT + GENERATED - 1


def test_a_format_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no importer for 'sqlang'; known formats: csv"):
        take(tmp_path / "a.json", tmp_path / "trace", "sqlang")
    for format in ("auto", "csv"):
        with pytest.raises(UserError, match="no such file"):
            take(tmp_path / "nowhere.csv", tmp_path / "trace", format, GIVEN)
