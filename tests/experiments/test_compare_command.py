"""`spac compare` on small traces: rows, files, winner, refusals, interruption."""

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml
from rich.console import Console

from experiments import compare, comparison
from experiments.commands import COMMANDS
from experiments.configuration import compose_config
from tests.experiments.conftest import Spac
from traces.reader import Trace

SMALL = ("hardware=rtx4090", "model=trace", "draft=pair", "workers=1", "pictures=false")


def compared(spac: Spac, trace: Path, *words: str) -> pd.DataFrame:
    outcome = spac("compare", f"trace={trace}", *SMALL, *words)
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
    assert outcome.out.strip().splitlines()[-1].endswith("of the best clairvoyant policy.")


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


def test_policies_that_the_trace_cannot_serve_are_left_out(spac: Spac, text_trace: Path) -> None:
    outcome = spac(
        "compare", f"trace={text_trace}", *SMALL, "acceptance=1", "gamma=1", "cache_ratio=0.2"
    )
    assert outcome.code == 0, outcome.err
    assert "left out: ours needs draft_tokens" in outcome.out  # texts have none
    assert "left out: binary_prefetch" not in outcome.out  # this one has next_layer_1
    assert "binary_prefetch" in outcome.out


def test_processes_give_the_same_rows(spac: Spac, dense_trace: Path) -> None:
    words = ("policy=[spac,lru_cpu]", "cache_ratio=0.2")
    one = compared(spac, dense_trace, *words)
    two = compared(spac, dense_trace, *words, "workers=2")
    pd.testing.assert_frame_equal(one, two)


def test_a_larger_grid_reads_the_trace_no_more_often(
    spac: Spac, dense_trace: Path, monkeypatch: pytest.MonkeyPatch
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
        compared(spac, dense_trace, "policy=[spac,lru_cpu]", f"cache_ratio={ratios}")
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
