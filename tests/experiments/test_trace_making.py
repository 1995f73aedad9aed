"""`spac trace generate`, `shuffle` and `export`, and import with a named model."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from tests.experiments.conftest import Spac
from traces.reader import open_trace

LINES = "request,position,layer,experts\n" + "".join(
    f"0,{t},{layer},{' '.join(map(str, range(t % 3, t % 3 + 4)))}\n"
    for t in range(5)
    for layer in range(24)
)


def numbers(text: str, row: str) -> list[float]:
    """The numbers of the table's row that begins with `row`."""
    (line,) = [line for line in text.splitlines() if row in line]
    return [float(one) for one in re.findall(r"-?\d+\.?\d*(?=%?(?:\s|$))", line.split(row)[1])]


def test_generate_shows_what_came_out(spac: Spac) -> None:
    made = spac("trace", "generate", "markov", "out=made", "reuse=0.6", "layers=3", "tokens=300")
    assert made.code == 0, made.err
    asked, measured = numbers(made.out, "experts reused from the token before")
    assert asked == 0.6 and measured == pytest.approx(0.6, abs=0.02)
    manifest = open_trace("made").manifest
    assert (manifest.model.layers, manifest.model.experts) == (3, 64)
    assert manifest.notes["synthetic"] == "markov" and manifest.notes["reuse"] == "0.6"
    assert "no problem found" in spac("trace", "check", "made").out


def test_generate_in_the_shape_of_a_named_model(spac: Spac) -> None:
    words = ("trace", "generate", "lru-adversary", "capacity=21", "tokens=20", "requests=1")
    assert spac(*words, "out=made", "model=qwen3-30b-a3b", "layers=2").code == 0
    model = open_trace("made").manifest.model
    assert (model.name, model.layers, model.experts, model.top_k) == ("qwen3-30b-a3b", 2, 128, 8)
    assert model.expert_bytes == 9_437_184


def test_a_generated_trace_plays(spac: Spac) -> None:
    words = ("layers=2", "experts=16", "top_k=2", "tokens=12", "requests=2")
    assert spac("trace", "generate", "zipf", "out=made", *words).code == 0
    played = spac("simulate", "trace=made", "policy=lru_cpu", "gamma=2", "acceptance=0.6")
    assert played.code == 0, played.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["generate", "markow", "out=x"], "unknown generator 'markow', did you mean markov?"),
        (["generate", "markov"], "needs out="),
        (
            ["generate", "markov", "out=x", "capacity=3"],
            "capacity=3: no parameter of markov, which",
        ),
        (["generate", "zipf", "out=x", "tokens=1.5"], "tokens=1.5: not a whole number"),
        (["generate", "zipf", "out=x", "experts=0"], "experts=0, must be at least 1"),
        (["generate", "phases", "out=x", "working_set=2"], "a row needs top_k=4"),
        (["generate", "phases", "out=x", "phase_tokens=4000"], "fewer than two phases"),
        (["generate", "fitted", "out=x"], "needs fit=: a trace, or one of deepseek-v2-lite"),
        (["generate", "fitted", "out=x", "fit=cod"], "'cod', did you mean code?"),
        (["generate", "fitted", "out=x", "fit=code", "layers=3"], "layers= and top_k= are those"),
        (["info", "code", "reuse=0.3"], "reuse=0.3: counts with spac trace generate only"),
        (["stats", "code", "out=x"], "out=x: counts with spac trace import or export or"),
        (["shuffle", "code", "out=x", "within=rows"], "within=rows: expected one of trace, req"),
        (["shuffle", "code"], "needs out="),
        (["export", "code"], "needs out="),
        (["export", "code", "out=x", "ratios=[0.001]"], "ratios=0.001: no slot in a layer of 64"),
        (
            ["import", "a.csv", "out=x", "model=gpt-oss-20"],
            "'gpt-oss-20', did you mean gpt-oss-20b",
        ),
        (["import", "a.csv", "out=x", "model=olmoe"], "24 layers, top-4, but olmoe has 16 MoE"),
        (["import", "a.csv", "out=x", "format=cvs"], "no importer for 'cvs'; known formats: csv"),
        (["import", "nowhere.csv", "out=x"], "nowhere.csv: no such file"),
    ],
)
def test_refusals_leave_nothing(spac: Spac, words: list[str], message: str) -> None:
    Path("a.csv").write_text(LINES, encoding="utf-8")
    assert message in spac("trace", *words).error
    assert not Path("x").exists()


def test_import_with_a_named_model(spac: Spac) -> None:
    Path("a.csv").write_text(LINES, encoding="utf-8")
    done = spac("trace", "import", "a.csv", "out=made", "model=gpt-oss-20b")
    assert done.code == 0, done.err
    model = open_trace("made").manifest.model
    assert (model.name, model.experts) == ("gpt-oss-20b", 32) and model.expert_bytes > 10_000_000
    words = ("out=other", "model=mine/moe", "experts=8", "expert_bytes=64")
    assert spac("trace", "import", "a.csv", *words).code == 0
    assert open_trace("other").manifest.model.name == "mine/moe"


def test_shuffle(spac: Spac, dense_trace: Path) -> None:
    done = spac("trace", "shuffle", str(dense_trace), "out=mixed", "within=request", "seed=3")
    assert done.code == 0 and "shuffled within request" in done.out
    assert open_trace("mixed").manifest.notes["seed"] == "3"


def test_fitted_to_a_trace(spac: Spac) -> None:
    """The law is fitted on 400 rows and measured on others: within 0.05."""
    made = spac("trace", "generate", "fitted", "fit=maths", "out=made", "requests=1", "tokens=800")
    assert made.code == 0, made.err
    rows = ("reused", *(f"{one} at {ratio}%" for one in ("lru", "belady", "static")
                        for ratio in (17, 25)))  # fmt: skip
    found = [numbers(made.out, row) for row in rows]
    for asked, measured in found:
        assert measured == pytest.approx(asked, abs=0.05)
    manifest = open_trace("made").manifest
    assert manifest.notes["fitted to"].startswith("maths, digest") and manifest.columns == (
        "router_weights",
    )


def test_export_shows_the_hits(spac: Spac, text_trace: Path) -> None:
    done = spac("trace", "export", str(text_trace), "out=files", "ratios=[0.25,0.5]")
    assert done.code == 0, done.err
    assert sorted(path.name for path in Path("files").iterdir()) == [
        f"layer-00{layer}.oracleGeneral.bin" for layer in range(3)
    ]
    assert "exists already and is not empty" in spac(
        "trace", "export", str(text_trace), "out=files"
    ).error  # fmt: skip
    if importlib.util.find_spec("libcachesim") is not None:
        rates = np.array(numbers(done.out, "25%"))[1:]
        np.testing.assert_array_equal(rates[:3], rates[3:])


@pytest.mark.parametrize(
    "name,said",
    [
        ("nowhere.read", "format=nowhere.read: cannot import nowhere.read (ModuleNotFoundError"),
        (
            "own_format.raed",
            "format=own_format.raed: cannot import own_format.raed (AttributeError",
        ),
        ("own_format.NAMES", "format=own_format.NAMES: own_format.NAMES is no class or function"),
        ("own_format.nothing", "format own_format.nothing: it returned NoneType"),
        ("own_format.broken", "no 'seq' in this own_format.broken file"),
    ],
)
def test_a_format_of_one_s_own_that_is_none(spac: Spac, name: str, said: str) -> None:
    Path("own_format.py").write_text(
        "NAMES = {}\ndef nothing(source): return None\ndef broken(source): return NAMES['seq']\n"
    )
    Path("routing.csv").write_text("seq\n")
    words = ("trace", "import", "routing.csv", f"format={name}", "out=made", "model_name=m")
    assert said in spac(*words, "experts=8", "expert_bytes=1").error
    assert not Path("made").exists()
