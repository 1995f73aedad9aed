"""The first word chooses; help is light; a wrong word is one line and exit code 2."""

import json
import subprocess
import sys

import pytest

from experiments.commands import COMMANDS, options
from experiments.configuration import compose_config
from experiments.help_text import read_config_text
from experiments.policy_notes import FAMILIES, summary
from tests.experiments.conftest import Spac

HEAVY = ("torch", "numba", "pandas", "hydra", "omegaconf", "numpy", "pyarrow", "matplotlib", "rich")


@pytest.mark.parametrize("words", [["--help"], ["compare", "--help"], ["policies", "-h"], []])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    program = (
        "import json, sys; from experiments.__main__ import main; "
        f"code = main({words!r}); print(json.dumps([code, sorted(sys.modules)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    code, modules = json.loads(done.stdout.splitlines()[-1])
    assert code == 0
    assert not set(HEAVY) & set(modules)


def test_overview_names_every_command(spac: Spac) -> None:
    shown = spac("--help")
    assert shown.code == 0
    assert all(f"  {name}" in shown.out for name in COMMANDS)


def test_command_help_shows_keys_defaults_and_examples(spac: Spac) -> None:
    shown = spac("compare", "--help").out
    assert "cache_ratio" in shown and "0.17" in shown
    assert "\n  policy " in shown and "\n  policies " not in shown
    assert shown.count("  spac compare ") == 3


def test_module_and_console_command_are_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "experiments", "compare", "cach_ratio=1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("error: unknown key 'cach_ratio', did you mean cache_ratio?")
    assert len(done.stderr.splitlines()) == 1


def test_unknown_command(spac: Spac) -> None:
    assert "unknown command 'compar'; there are: demo, record" in spac("compar").error


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["policies", "nam=spac"], "unknown key 'nam', did you mean name?"),
        (["policies", "spac"], "'spac' is not of the form key=value"),
        (["policies", "name=spax"], "unknown policy 'spax', did you mean spac? There are: adapmoe"),
        (["compare", "hardware=rtx4091"], "unknown hardware 'rtx4091', did you mean rtx4090?"),
        (["compare", "hardware=[rtx4090,standin]"], "-m hardware=a,b runs one job each"),
        (["compare", "hardware.gpu.vram=3"], "unknown key 'hardware.gpu.vram'"),
        (["compare", "gamma=[1,"], "'gamma=[1,' cannot be read as key=value"),
        (["trace", "look", "here"], "unknown action 'look'"),
        (["trace"], "usage: spac trace info|check|stats|import|"),
    ],
)
def test_refusals(spac: Spac, words: list[str], expected: str) -> None:
    assert expected in spac(*words).error


def test_policies_are_a_line_each_in_eighty_columns(
    spac: Spac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = spac("policies").out
    lines = shown.splitlines()
    names = options("policy")
    assert len(lines) <= len(names) + 3 * len(FAMILIES) and max(map(len, lines)) <= 80
    for name in names:
        (line,) = (line for line in lines if line.split()[:1] == [name])
        assert line.strip().endswith(summary(name))
    assert "belady" in shown.partition("bounds: see the future")[2] and "\u2026" not in shown
    details = spac("policies", "name=spac").out
    assert "2603.09983" in details and "levels=5" in details


def test_a_policy_of_the_user_is_told_by_its_docstring(spac: Spac) -> None:
    shown = " ".join(spac("policies", "name=policies.template.MyPolicy").out.split())
    assert "Every expert has a score that fades from pass to pass" in shown
    assert "fade=0.9" in shown and "counts only" in shown


def test_multirun_runs_one_job_per_value(spac: Spac) -> None:
    shown = spac("policies", "-m", "name=spac,belady")
    assert shown.code == 0
    assert "2603.09983" in shown.out and "Belady" in shown.out


def test_multirun_refuses_like_an_ordinary_run(spac: Spac) -> None:
    outcome = spac("policies", "-m", "name=spac,belady", "nam=3")
    assert outcome.code == 2 and "unknown key 'nam'" in outcome.err
    assert "Traceback" not in outcome.err


def test_interrupt_is_one_line(spac: Spac, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(config: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("experiments.policies_command.run", stop)
    outcome = spac("policies")
    assert outcome.code == 130
    assert outcome.err == "interrupted: what was finished is kept\n"


def test_a_prompt_is_taken_as_it_is() -> None:
    text = "def main(argv=[1, 'two']): # {x}\n"
    config = compose_config(COMMANDS["run"], [f"prompt={text}", "gamma=2"])
    assert config.prompt == text and config.gamma == 2
    assert compose_config(COMMANDS["run"], ["prompt=null"]).prompt is None


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_the_terminal(
    name: str, width: int, spac: Spac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    about, keys = read_config_text(COMMANDS[name])
    shown = spac(name, "--help").out
    words = " ".join(shown.split())
    for key in keys:
        assert " ".join(key.meaning.split()) in words
    for line in shown.splitlines():  # commands are copied, and defaults are one word
        whole = line.strip() in map(str.strip, about) or any(key.default in line for key in keys)
        assert len(line) <= width or (whole and line.startswith("  "))
    assert all(len(line) <= width for line in spac("--help").out.splitlines())


def test_the_end_does_not_wait_for_idle_processes_of_a_pool() -> None:
    """Those of joblib stay for five minutes, unless they are told of the end."""
    program = (
        "import sys\n"
        "from joblib.externals.loky import get_reusable_executor\n"
        "from experiments.__main__ import program\n"
        "if __name__ == '__main__':\n"
        "    get_reusable_executor(1, timeout=300).submit(abs, 1).result()\n"
        "    sys.argv = ['spac', '--help']\n"
        "    program()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert "usage: spac" in done.stdout
