"""`spac study cells` in small: its runs, its table, its file of cells, its refusals."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf

from experiments.studies.cell_table import gap_closed
from experiments.studies.cells_file import CELLS_FILE, read_cells
from tests.experiments.conftest import Spac
from traces.manifest import ModelInfo
from traces.synthetic_routing import RoutingLaw, generate_routing

LAW = RoutingLaw(1.2, 1.0, 0.97, 0.2)
CELLS = {
    "cache_ratios": [0.3], "windows": [3, 5], "policies": ["lru_cpu", "ours", "foresight", "fate"],
    "tuned": ["lru_cpu"], "short_gammas": [0, 1], "no_draft": ["ours", "lru_cpu"],
    "nulls": ["ours", "lru_cpu"],
}  # fmt: skip

DENSE = [{"trace": "code", "requests": 2, "model": "qwen3-30b-a3b", "draft": "qwen3-4b-fp8"}]


@pytest.fixture
def routing_folder(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    experts = generate_routing(LAW, ModelInfo("m", 2, 16, 2, 1), 400, seed=0).experts
    np.savez(
        data / "other.npz", experts=experts, token=np.arange(400, dtype=np.int32) % 9,
        seq=np.repeat(np.arange(4, dtype=np.int32), 100), vocab=np.array(["w"]),
        pos=np.tile(np.arange(100, dtype=np.int32), 4),
        meta='{"model": "openai/gpt-oss-20b", "experts": 16}',
    )  # fmt: skip
    return data


def cells_file(tmp_path: Path, dense_trace: Path, **changes: object) -> Path:
    costs = {"model": "qwen3-30b-a3b", "draft": "qwen3-4b-fp8"}
    traces = [
        {"trace": str(dense_trace), "requests": 2, **costs},
        {"file": "other.npz", "requests": 2, "acceptance": 0.7, **costs},
    ]
    path = tmp_path / "cells.yaml"
    OmegaConf.save(OmegaConf.create({**CELLS, "traces": traces, **changes}), path)
    return path


def test_cells_in_small(
    spac: Spac, tmp_path: Path, dense_trace: Path, routing_folder: Path
) -> None:
    path = cells_file(tmp_path, dense_trace)
    outcome = spac(
        "study", "cells", f"cells={path}", f"data={routing_folder}", "workers=1", "copy_to=kept"
    )
    assert outcome.code == 0, outcome.err
    folder = Path("outputs/study/latest")
    kept = {"runs.csv", "table.csv", "rankings.csv", "cells.png", "findings.md"}
    assert {path.name for path in Path("kept").iterdir()} == kept
    table, runs = (pd.read_parquet(folder / f"{name}.parquet") for name in ("table", "runs"))
    assert table[["workload", "window"]].values.tolist() == [
        ["synthetic", 3], ["synthetic", 5], ["other", 3], ["other", 5],
    ]  # fmt: skip
    assert table["approximate"].tolist() == [False, False, True, True]
    # Only the dense trace has next-layer predictions, which fate insists on.
    assert set(runs.loc[runs["policy"] == "fate", "workload"]) == {"synthetic"}
    # 4 or 3 policies at 2 windows, 2 nulls at 2 windows, 2 at 2 short windows, 2 without a draft.
    assert len(runs) == (4 + 3) * 2 + 2 * (4 + 4 + 2)
    for _, group in runs.groupby("workload"):
        slots = group.groupby("part")["slots"].unique()
        assert slots["no draft"].min() > slots["cell"].max() and len(slots["cell"]) == 1
    for _, cell in table.iterrows():
        here = runs[(runs["workload"] == cell["workload"]) & (runs["part"] == "cell")]
        here = here[here["gamma"] == cell["window"] - 1].set_index("policy")["tokens_per_second"]
        rivals = here.drop(["ours", "foresight"])
        assert cell["published"] == rivals.idxmax()
        assert cell["ratio"] == pytest.approx(here["ours"] / rivals.max())
        assert cell["speed_possible"] >= here["foresight"]
    text = (folder / "findings.md").read_text()
    assert "| ~other | 30% | 3 |" in text and "approximate" in text
    assert "`no draft: ours`" in text


def test_a_half_that_is_too_small_is_refused(spac: Spac, tmp_path: Path, dense_trace: Path) -> None:
    path = cells_file(tmp_path, dense_trace)
    words = ("study", "cells", f"cells={path}", "data=false")
    assert (
        "2 requests asked for, the development half has 1"
        in spac(*words, "split=development").error
    )
    assert "other.npz is a routing file; give data=FOLDER" in spac(*words).error
    assert "split=both: there are development and held_out" in spac(*words, "split=both").error


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"windows": []}, "needs traces, cache ratios and windows"),
        ({"nulls": ["lru"]}, "unknown policy in nulls 'lru'"),
        ({"more": 1}, "needs exactly the keys"),
        ({"traces": DENSE, "policies": ["lru_cpu", "ours"]}, "needed are a clairvoyant one"),
        ({"traces": DENSE, "policies": ["foresight", "ours"]}, "one to compare ours with"),
        ({"traces": [{"trace": "code", "model": "qwen3-30b-a3b", "draft": "pair"}]},
         "a trace needs model, draft, requests"),
        ({"traces": [{"model": "trace", "draft": "pair", "requests": 2}]},
         "either trace or file"),
        ({"traces": [{"trace": "code", "model": "qwen", "draft": "pair", "requests": 2}]},
         "unknown model 'qwen'"),
        ({"traces": [{"trace": "code", "model": "trace", "draft": "pair", "requests": 1}]},
         "need 2: the first is warm-up"),
    ],
)  # fmt: skip
def test_files_of_cells_are_checked(
    spac: Spac, tmp_path: Path, dense_trace: Path, changes: dict[str, object], expected: str
) -> None:
    path = cells_file(tmp_path, dense_trace, **changes)
    assert expected in spac("study", "cells", f"cells={path}", "data=false").error


def test_a_missing_file_of_cells(spac: Spac, tmp_path: Path) -> None:
    error = spac("study", "cells", "cells=nowhere.yaml").error
    assert error == "cells=nowhere.yaml: cannot read it (No such file or directory)"
    (tmp_path / "broken.yaml").write_text("a: [")
    assert "cells=broken.yaml: not valid YAML" in spac("study", "cells", "cells=broken.yaml").error


def test_the_kept_cells_are_all_there() -> None:
    cells = read_cells(CELLS_FILE)
    assert len(cells.traces) == 9 and cells.windows == (5, 9)
    assert cells.cache_ratios == (0.10, 0.17, 0.25) and cells.policies is None


def test_gap_by_hand() -> None:
    """Times per token 4, 3 and 2: half of the way."""
    assert gap_closed(1 / 4, 1 / 3, 1 / 2) == pytest.approx(0.5)
    assert gap_closed(1 / 4, 1 / 5, 1 / 2) == pytest.approx(-0.5)
    assert np.isnan(gap_closed(1 / 2, 1 / 3, 1 / 2)), "no clairvoyant is faster"
