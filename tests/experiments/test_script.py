"""Programs beside `spac`: one line for what a person can mend, and nothing kept is lost."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments import readme
from experiments.chat import read_prompts_of_lines
from experiments.gpu_check.__main__ import main as gpu_check
from experiments.script import Options, count, mendable, new_file, run_script, seconds
from policies.errors import UserError

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UserError("no such\nthing"), 2, "error: no such thing\n"),
        (OSError(errno.ENOSPC, "No space left", "there"), 2, "error: No space left: there\n"),
        (MemoryError("9 EiB"), 2, "error: out of memory (9 EiB); lower the sizes asked for\n"),
        (KeyboardInterrupt(), 130, "interrupted: what was finished is kept\n"),
    ],
)
def test_exit_codes(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, said: str
) -> None:
    def fail() -> int:
        raise error

    assert run_script(fail) == code
    assert capsys.readouterr().err == said


def test_a_fault_of_ours_keeps_its_traceback() -> None:
    assert mendable(KeyError("x")) is None
    with pytest.raises(KeyError):
        run_script(lambda: {}["x"])
    assert run_script(lambda: 7) == 7


@pytest.mark.parametrize("closed", [(), (0,), (1,), (2,), (0, 1), (0, 1, 2)])
def test_closed_streams_lead_nowhere(tmp_path: Path, closed: tuple[int, ...]) -> None:
    """A file opened afterwards never gets the number of standard output, and so what is printed."""
    program = (
        "import sys; from experiments.script import open_streams; open_streams();"
        "f = open('made', 'w'); print('told'); print('told', file=sys.stderr);"
        "sys.stdin.readline();"
        "sys.stdout.flush(); f.write(str(f.fileno() > 2))"
    )

    def close() -> None:
        for number in closed:
            os.close(number)

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, preexec_fn=close, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made").read_text() == "True"
    assert done.stdout == ("" if 1 in closed else "told\n")
    assert done.stderr == ("" if 2 in closed else "told\n")


def test_help_with_standard_output_closed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "experiments", "--help"], cwd=tmp_path, capture_output=True,
        text=True, preexec_fn=lambda: os.close(1), env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--passes", "0"], "0: must be a whole number of at least 1"),
        (["--passes", "1.5"], "1.5: must be a whole number"),
        (["--seconds", "nan"], "nan: must be a number of seconds above 0"),
        (["--seconds", "-1"], "--seconds"),
        (["--out", "."], ".: a folder; name the file"),
        (["--out", "file/below"], "file/below: no such place"),
        (["--colour"], "unrecognized arguments: --colour; test --help lists the options"),
    ],
)
def test_options_are_checked_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    options = Options(prog="test")
    options.add_argument("--passes", type=count)
    options.add_argument("--seconds", type=seconds)
    options.add_argument("--out", type=new_file)
    with pytest.raises(UserError) as refused:
        options.parse_args(words)
    assert expected in str(refused.value)


def test_the_gpu_check_refuses_a_place_that_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a folder; name the file"):
        gpu_check(["--device", "standin", "--small", "--out", str(tmp_path)])


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A README with its parts and kept results, in place of the project's own."""
    parts = (f"<!-- {name}: begin -->\nold\n<!-- {name}: end -->"
             for name in (readme.RESULTS_PART, readme.VALIDATION_PART))  # fmt: skip
    (tmp_path / "README.md").write_text("\n".join(parts))
    results = tmp_path / "results"
    results.mkdir()
    (results / "table.csv").write_text("kept")
    monkeypatch.setattr(readme, "ROOT", tmp_path)
    monkeypatch.setattr(readme, "RESULTS", results)
    return tmp_path


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "\x89PNG"])
def test_a_foreign_table_replaces_nothing(kept: Path, content: str) -> None:
    foreign = kept / "foreign"
    foreign.mkdir()
    (foreign / "table.csv").write_text(content)
    with pytest.raises(UserError, match=r"table\.csv: no table of a comparison"):
        readme.main(foreign)
    assert (kept / "results" / "table.csv").read_text() == "kept"
    assert "old" in (kept / "README.md").read_text()


def test_a_readme_without_its_markers(kept: Path) -> None:
    with pytest.raises(UserError, match="is not there once"):
        readme.with_section("no markers", readme.RESULTS_PART, "new")


ON = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from experiments.__main__ import program; "


def spoken(words: list[str], stdout: int, **environment: str) -> tuple[int, str]:
    """Exit code of `spac` with its own end, and what it says on standard error."""
    done = subprocess.run(
        [sys.executable, "-c", f"{ON}sys.argv = ['spac', *{words!r}]; program()"], stdout=stdout,
        stderr=subprocess.PIPE, text=True, env=os.environ | environment, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["policies"]])
def test_text_that_nobody_reads_or_that_has_no_room(words: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    assert spoken(words, write) == (141, "")
    os.close(write)
    full = os.open("/dev/full", os.O_WRONLY)
    code, said = spoken(words, full)
    os.close(full)
    assert code == 2 and said.startswith("error: ") and said.endswith("No space left on device\n")
    assert said.count("\n") == 1


def test_a_word_of_foreign_bytes() -> None:
    code, said = spoken(["run", "prompt=\udcff"], subprocess.DEVNULL)
    assert code == 2
    assert said == "error: 'prompt=\\udcff': no text in the encoding of this locale\n"


@pytest.mark.parametrize("lines", [["first\n", "b\udcffad\n"], None])
def test_lines_of_foreign_bytes(lines: list[str] | None, tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"first\n" * 2000 + b"\xff\n")
    with (tmp_path / "lines").open(encoding="utf-8") as stream:
        given = stream if lines is None else lines
        with pytest.raises(UserError, match=r"standard input, after line [0-9]+: no text"):
            assert "first" in list(read_prompts_of_lines(given))
