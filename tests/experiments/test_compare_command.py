"""`spac compare` on small traces: rows, files, winner, refusals, interruption."""

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml
from rich.console import Console

from experiments import compare, comparison
from experiments.bounding import refuse_beaten
from experiments.commands import COMMANDS
from experiments.configuration import compose_config
from tests.experiments.conftest import Spac
from traces.reader import Trace
from traces.synthetic import SyntheticShape, markov_text, synthetic_manifest
from traces.writer import TraceWriter

SMALL = ("hardware=rtx4090", "model=trace", "draft=pair", "workers=1", "pictures=false")


def compared(spac: Spac, trace: Path, *words: str) -> pd.DataFrame:
    usual = [word for word in SMALL if word.partition("=")[0] not in "".join(words)]
    outcome = spac("compare", f"trace={trace}", *usual, *words)
    assert outcome.code == 0, outcome.err
    return pd.read_parquet("outputs/compare/latest/table.parquet")


def test_grid_in_one_job(spac: Spac, dense_trace: Path) -> None:
    rows = compared(
        spac, dense_trace,
        "policy=[spac,lru_cpu]", "cache_ratio=[0.2,0.4]", "gamma=[1,3]", "no_speculation=null",
    )  # fmt: skip
    assert len(rows) == 2 * 2 * 2
    assert set(rows["policy"]) == {"spac", "lru_cpu"}
    assert sorted(rows["slots"].unique()) == [9, 19]
    assert (rows["mean_gamma"] == rows["gamma"]).all()


def test_everything_is_written(spac: Spac, dense_trace: Path) -> None:
    outcome = spac(
        "compare", f"trace={dense_trace}", *SMALL[:-1], "policy=[spac,belady]", "gamma=[1,2]",
        "cache_ratio=[0.2,0.3]",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    folder = Path("outputs/compare/latest")
    assert {path.name for path in folder.iterdir()} == {
        "run.json", "table.csv", "table.parquet", "winner.yaml", "runlogs", "tps_by_policy.png",
        "placements.png", "tps_over_cache_ratio.png", "tps_over_gamma.png",
        "verify_pass_lanes.png",
    }  # fmt: skip
    record = json.loads((folder / "run.json").read_text())
    assert record["config"]["gamma"] == [1, 2] and record["config"]["policy"] == ["spac", "belady"]
    assert len(record["inputs"][str(dense_trace)]) == 64
    assert record["versions"]["numpy"] and len(record["source_hash"]) == 16
    assert record["planned_rows"] == len(pd.read_csv(folder / "table.csv"))
    assert outcome.out.strip().splitlines()[-1].endswith("% of what is possible.")


def test_clairvoyants_never_win(spac: Spac, dense_trace: Path) -> None:
    rows = compared(spac, dense_trace, "policy=[all_cpu,belady,window_oracle]", "cache_ratio=0.5")
    winner = yaml.safe_load(Path("outputs/compare/latest/winner.yaml").read_text())
    assert winner["policy"] in {"all_cpu", "lru_cpu"}
    assert set(rows.loc[rows["clairvoyant"], "policy_name"]) == {"belady", "window_oracle"}


def test_winner_only_clairvoyants_is_refused(spac: Spac, dense_trace: Path) -> None:
    words = ("policy=belady", "no_speculation=null", "cache_ratio=0.2")
    assert "nothing can win" in spac("compare", f"trace={dense_trace}", *SMALL, *words).error


def test_no_speculation_gets_the_drafts_vram(spac: Spac, dense_trace: Path) -> None:
    outcome = spac(
        "compare", f"trace={dense_trace}", "workers=1", "pictures=false", "policy=lru_cpu",
        "cache_ratio=0.2", "no_speculation=lru_cpu",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    rows = pd.read_parquet("outputs/compare/latest/table.parquet").set_index("policy")
    rival = rows.loc["no_speculation"]
    assert rival["mean_gamma"] == 0 and rival["draft"] == "none" and rival["gamma"] == 4
    assert rival["slots"] > rows.loc["lru_cpu", "slots"]


def test_text_traces_are_called_approximate(spac: Spac, text_trace: Path) -> None:
    outcome = spac(
        "compare", f"trace={text_trace}", *SMALL, "policy=spac", "acceptance=0.7", "gamma=2",
        "cache_ratio=0.2",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert "approximate where marked ~" in outcome.out and "~synthetic" in outcome.out
    assert outcome.out.strip().splitlines()[-1].startswith("Approximate")
    folder = Path("outputs/compare/latest")
    assert pd.read_csv(folder / "table.csv")["approximate"].all()
    assert yaml.safe_load((folder / "winner.yaml").read_text())["approximate"] is True


def test_policies_that_the_trace_cannot_serve_are_left_out(spac: Spac, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shape = SyntheticShape(layers=3, experts=16, top_k=2, requests=3, tokens=12)
    with TraceWriter(bare, synthetic_manifest(shape, "text")) as writer:
        writer.append(markov_text(shape, seed=1))
    outcome = spac("compare", f"trace={bare}", *SMALL, "acceptance=1", "gamma=1", "cache_ratio=0.2")
    assert outcome.code == 0, outcome.err
    assert "left out: binary_prefetch needs next_layer_1" in outcome.out
    assert "left out: ours" not in outcome.out  # the text stands in for drafted tokens
    rows = pd.read_csv("outputs/compare/latest/table.csv")
    assert rows.loc[rows["policy_name"] == "ours", "approximate"].all()
    assert "ours" in set(rows["policy_name"]) and "binary_prefetch" not in set(rows["policy_name"])


def test_every_row_has_its_bracket_and_no_run_beats_a_bound(spac: Spac, dense_trace: Path) -> None:
    words = ("policy=[spac,ours,belady,lru_cpu]", "cache_ratio=[0.2,0.4]", "gamma=[1,4]")
    rows = compared(spac, dense_trace, *words, "no_speculation=[lru_cpu,ours]")
    csv = pd.read_csv("outputs/compare/latest/table.csv")
    for column in ("bound_seconds", "possible_low", "possible_high"):
        assert csv[column].to_numpy() == pytest.approx(rows[column].to_numpy())
    assert (rows["bound"] == "fast").all()
    assert (rows["bound_seconds"] <= rows["decode_seconds"]).all()
    assert (rows["tokens_per_second"] <= rows["possible_low"]).all()
    assert (rows["possible_low"] <= rows["possible_high"]).all()
    share = rows["tokens_per_second"] / rows["possible_high"]
    assert rows["of_possible_low"].to_numpy() == pytest.approx(share.to_numpy())
    cells = rows.groupby(["cache_ratio", "gamma"])[["possible_low", "possible_high"]]
    assert (cells.nunique() == 1).all().all()
    # Windows of its own choice leave more room than a fixed one.
    cell = rows[(rows["cache_ratio"] == 0.4) & (rows["gamma"] == 4)].set_index("policy")
    assert cell.loc["ours", "bound_seconds"] <= cell.loc["spac", "bound_seconds"]
    assert cell.loc["spac", "bound_seconds"] == cell.loc["belady", "bound_seconds"]
    assert cell.loc["no_speculation ours", "bound_seconds"] != cell.loc["ours", "bound_seconds"]


def test_bound_can_be_left_out_or_made_of_linear_programs(spac: Spac, dense_trace: Path) -> None:
    words = ("policy=[spac,ours]", "cache_ratio=0.3", "gamma=2", "no_speculation=null")
    plain = compared(spac, dense_trace, *words, "bound=none")
    assert "bound_seconds" not in plain
    fast = compared(spac, dense_trace, *words)
    exact = compared(spac, dense_trace, *words, "bound=lp", "workers=2")
    assert (fast["bound_seconds"] <= exact["bound_seconds"]).all()
    assert (exact["bound_seconds"] <= exact["decode_seconds"]).all()
    refused = spac("compare", f"trace={dense_trace}", "bound=tight")
    assert refused.error == "bound=tight: there are none, fast, lp"


def test_a_run_that_beats_its_bound_is_a_fault_that_stops_everything() -> None:
    rows = pd.DataFrame({"policy": ["x"], "workload": ["w"], "decode_seconds": [1.0]})
    refuse_beaten(rows, [1.0])
    with pytest.raises(RuntimeError, match=r"x on w took 1.0 s, less than the lower bound of 1.5"):
        refuse_beaten(rows, [1.5])


def test_processes_give_the_same_rows(spac: Spac, dense_trace: Path) -> None:
    words = ("policy=[spac,lru_cpu]", "cache_ratio=0.2")
    one = compared(spac, dense_trace, *words)
    two = compared(spac, dense_trace, *words, "workers=2")
    pd.testing.assert_frame_equal(one, two)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_larger_grid_reads_the_trace_no_more_often(
    spac: Spac, dense_trace: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    reads: list[int] = []
    honest = Trace.read_part

    def counted(trace: Trace, index: int, *rest: object) -> object:
        reads.append(index)
        return honest(trace, index, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Trace, "read_part", counted)
    found = []
    for ratios in ("0.2", "[0.2,0.3,0.4,0.5]"):
        comparison._opened.cache_clear()
        reads.clear()
        words = ("policy=[spac,lru_cpu,belady]", "no_speculation=null", f"engine={engine}")
        compared(spac, dense_trace, *words, f"cache_ratio={ratios}")
        found.append(len(reads))
    assert found[0] == found[1] > 0


def test_jobs_of_one_trace_are_played_together(dense_trace: Path, text_trace: Path) -> None:
    words = [
        f"trace=[{dense_trace},{text_trace}]", "acceptance=0.7", "policy=[spac,lru_cpu]",
        "gamma=[1,2]", "cache_ratio=[0.2,0.4]", "no_speculation=null",
    ]  # fmt: skip
    config = compose_config(COMMANDS["compare"], words)
    jobs = compare.jobs_from(config, Console(quiet=True))
    order = comparison.by_trace(jobs)
    assert sorted(order) == list(range(len(jobs))) and len(jobs) == 16
    assert [jobs[index].trace for index in order] == [dense_trace] * 8 + [text_trace] * 8
    assert [index for index in order if jobs[index].trace == text_trace] == sorted(order[8:])


def test_interrupt_keeps_finished_rows(
    spac: Spac, dense_trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = compare.play_all

    def interrupted(*arguments: object) -> object:
        for number, finished in enumerate(honest(*arguments)):  # type: ignore[arg-type]
            if number == 2:
                raise KeyboardInterrupt
            yield finished

    monkeypatch.setattr(compare, "play_all", interrupted)
    outcome = spac("compare", f"trace={dense_trace}", *SMALL, "cache_ratio=0.2")
    assert outcome.code == 130
    assert outcome.err.strip() == "interrupted: what was finished is kept"
    folder = Path("outputs/compare/latest")
    assert len(pd.read_csv(folder / "table.csv")) == 2
    assert len(pd.read_parquet(folder / "table.parquet")) == 2
    # All rows there are in one cell, so only run.json can tell that others are missing.
    outcome = spac("report", "pictures=false")
    assert outcome.code == 0, outcome.err
    last = outcome.out.strip().splitlines()[-1]
    assert last.startswith("Provisional, the comparison was interrupted: ")
    assert "clairvoyant" not in last and "possible" not in last
    monkeypatch.undo()


def test_report_of_a_comparison(spac: Spac, dense_trace: Path) -> None:
    compared(spac, dense_trace, "policy=[spac,lru_cpu]", "cache_ratio=0.2")
    outcome = spac("report")
    assert outcome.code == 0, outcome.err
    assert Path("outputs/report/1/tps_by_policy.png").is_file()
    assert (
        Path("outputs/report/1/winner.yaml").read_text()
        == Path("outputs/compare/1/winner.yaml").read_text()
    )
    assert "not an output folder of spac" in spac("report", "outputs").error


def test_multirun_gives_each_job_a_folder(spac: Spac, dense_trace: Path) -> None:
    outcome = spac(
        "compare", "-m", f"trace={dense_trace}", *SMALL, "policy=lru_cpu", "gamma=1,2",
        "cache_ratio=0.2",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    for number in (1, 2):
        rows = pd.read_csv(f"outputs/compare/{number}/table.csv")
        assert set(rows["gamma"]) == {number}
