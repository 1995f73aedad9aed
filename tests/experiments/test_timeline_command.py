"""`spac timeline`: the trace keeps the rules of the format and tells what the log holds."""

import gzip
import itertools
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from experiments.lanes_figure import typical_pass
from experiments.perfetto_counters import steps
from experiments.perfetto_span import stacked
from simulator.timeline import Interval, pass_lanes
from tests.experiments.conftest import Spac
from traces.copy_uses import uses_of_copies
from traces.runlog import RunLog, read_runlog
from traces.runlog_schema import COPY_PREFETCH

LATEST = Path("outputs/timeline/latest")
SMALL = ("model=trace", "draft=pair", "cache_ratio=0.25", "gamma=2", "requests=2")
NANOSECONDS = 1e3


@pytest.fixture
def simulated(spac: Spac, dense_trace: Path) -> RunLog:
    """A run with fetches, prefetches and a draft, in outputs/simulate/latest."""
    assert spac("simulate", f"trace={dense_trace}", "policy=binary_prefetch", *SMALL).code == 0
    (directory,) = Path("outputs/simulate/latest/runlogs").iterdir()
    return read_runlog(directory)


def events(path: Path = LATEST) -> list[dict[str, Any]]:
    content = json.loads(gzip.decompress((path / "timeline.json.gz").read_bytes()))
    found: list[dict[str, Any]] = content["traceEvents"]
    return found


def slices(found: list[dict[str, Any]], process: int = 1) -> list[dict[str, Any]]:
    return [one for one in found if one["ph"] == "X" and one["pid"] == process]


def test_fields_that_the_format_asks_for(spac: Spac, simulated: RunLog) -> None:
    assert spac("timeline", "passes=all").code == 0
    needed = {
        "X": {"name", "cat", "pid", "tid", "ts", "dur"},
        "C": {"name", "pid", "ts", "args"},
        "s": {"name", "cat", "id", "pid", "tid", "ts"},
        "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
        "M": {"name", "pid", "args"},
    }
    kinds = set()
    for event in events():
        kinds.add(event["ph"])
        assert needed[event["ph"]] <= event.keys(), event
        assert event.get("ts", 0) >= 0 or event["cat"] in ("prefetch", "demand", "copy"), event
        assert event.get("dur", 0) >= 0
    assert kinds == needed.keys()


def test_slices_of_a_track_do_not_overlap(spac: Spac, simulated: RunLog) -> None:
    assert spac("timeline", "passes=all").code == 0
    tracks: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for one in slices(events()):
        tracks[one["tid"]].append((one["ts"], one["ts"] + one["dur"]))
    assert len(tracks) >= 5  # passes, host, GPU, CPU, link
    for intervals in tracks.values():
        intervals.sort()
        for (_, end), (begin, _) in itertools.pairwise(intervals):
            assert begin >= end - 1e-6


def test_every_interval_of_the_log_is_there(spac: Spac, simulated: RunLog) -> None:
    assert spac("timeline", "passes=all").code == 0
    found = slices(events())
    start = int(simulated.passes["begin_ns"].min())
    drawn = sorted(
        (one["cat"], round(one["ts"] * NANOSECONDS), round(one["dur"] * NANOSECONDS))
        for one in found
        if one["cat"] not in ("pass", "prefill")
    )
    wanted = {
        one for index in simulated.passes["pass_index"] for one in pass_lanes(simulated, int(index))
    }
    told = [(one.kind, one.begin_ns - start, one.end_ns - one.begin_ns) for one in wanted]
    # A copy that ran between two passes belongs to no pass, but was on the link all the same.
    assert set(told) <= set(drawn)
    copies = [one for one in drawn if one[0] in ("demand", "stream", "prefetch")]
    assert len(copies) == len(simulated.copies)
    assert sum(one["cat"] in ("pass", "prefill") for one in found) == len(simulated.passes)


def test_arrows_lead_from_copies_to_the_work_that_uses_them(spac: Spac, simulated: RunLog) -> None:
    assert spac("timeline", "passes=all").code == 0
    found = events()
    by_track = defaultdict(list)
    for one in slices(found):
        by_track[one["tid"]].append(one)

    def around(event: dict[str, Any]) -> dict[str, Any]:
        (one,) = [
            one
            for one in by_track[event["tid"]]
            if one["ts"] - 1e-6 <= event["ts"] < one["ts"] + one["dur"] - 1e-9
        ]
        return one

    starts = {one["id"]: one for one in found if one["ph"] == "s"}
    ends = {one["id"]: one for one in found if one["ph"] == "f"}
    assert starts.keys() == ends.keys() and len(starts) > 10
    uses = uses_of_copies(simulated).set_axis(simulated.copies["copy_id"])
    copies = simulated.copies.set_index("copy_id")
    for number, start in starts.items():
        source, target = around(start), around(ends[number])
        assert source["args"]["copy"] == number
        assert target["cat"] == "experts"
        assert target["args"]["pass"] == uses.loc[number, "pass_index"]
        assert target["args"]["of"] == f"layer {uses.loc[number, 'layer']}"
        assert source["args"]["layer"] == uses.loc[number, "layer"]
        assert source["ts"] + source["dur"] <= target["ts"] + target["dur"] + 1e-6
        assert copies.loc[number, "slot"] == source["args"]["slot"]
    assert any(copies.loc[number, "kind"] == COPY_PREFETCH for number in starts)


def test_counters_count(spac: Spac, simulated: RunLog) -> None:
    assert spac("timeline", "passes=all").code == 0
    found = events()
    on_its_way = [one for one in found if one["ph"] == "C" and one["name"] == "slots on their way"]
    settled = [one for one in found if one["ph"] == "C" and one["name"] == "slots settled"]
    assert len(on_its_way) == len(settled) > 2
    for some, rest in zip(on_its_way, settled, strict=True):
        assert some["ts"] == rest["ts"]
        assert some["args"][""] + rest["args"][""] == simulated.info.slots
        assert some["args"][""] >= 0
    assert max(one["args"][""] for one in on_its_way) >= 1


def test_runs_side_by_side_begin_together(spac: Spac, simulated: RunLog) -> None:
    assert spac("timeline", "runlog=[outputs/simulate/latest,outputs/simulate/latest]").code == 0
    found = events()
    assert {one["pid"] for one in found} == {1, 2}
    firsts = [min(one["ts"] for one in slices(found, p) if one["cat"] == "prefill") for p in (1, 2)]
    assert firsts == [0, 0]


def test_only_the_passes_asked_for(spac: Spac, simulated: RunLog) -> None:
    assert spac("timeline", "passes=2:3", "pass=3").code == 0
    names = [
        one["name"].split()[-1] for one in slices(events()) if one["cat"] in ("pass", "prefill")
    ]
    assert names == ["2", "3"]
    pictures = sorted(path.name for path in LATEST.iterdir() if path.suffix in (".png", ".pdf"))
    assert pictures == ["1-binary_prefetch-pass-3.pdf", "1-binary_prefetch-pass-3.png"]


def test_same_run_same_bytes(spac: Spac, simulated: RunLog) -> None:
    kept = []
    for _ in range(2):
        assert spac("timeline", "passes=0:5", "pass=3").code == 0
        kept.append({path.name: path.read_bytes() for path in LATEST.iterdir()})
    assert kept[0] == kept[1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["passes=3"], "write first:last"),
        (["passes=5:2"], "write first:last"),
        (["passes=9000:9001"], "its last is"),
        (["pass=9000"], "has passes 0 to"),
        (["pass=first"], "not a whole number"),
        (["runlog=nowhere"], "no such folder"),
        (["runlog=outputs"], "holds no run log"),
    ],
)
def test_refusals(spac: Spac, simulated: RunLog, words: list[str], told: str) -> None:
    assert told in spac("timeline", *words).error
    assert not Path("outputs/timeline").exists()


def test_a_folder_with_several_run_logs_asks_which(spac: Spac, simulated: RunLog) -> None:
    (directory,) = Path("outputs/simulate/latest/runlogs").iterdir()
    directory.with_name("2-copy").symlink_to(directory.name, target_is_directory=True)
    assert "holds 2 run logs, name one of them" in spac("timeline").error


def test_overlapping_intervals_go_to_rows_of_their_own() -> None:
    spans = [(0, 10), (5, 12), (10, 20), (11, 13), (12, 14)]
    intervals = [Interval("link", a, b, str(i), "demand") for i, (a, b) in enumerate(spans)]
    assert [(row, int(one.label)) for row, one in stacked(intervals)] == [
        (0, 0), (1, 1), (0, 2), (2, 3), (1, 4),
    ]  # fmt: skip


def test_steps_of_open_intervals() -> None:
    import pandas as pd

    found = steps(pd.Series([0, 5, 5]), pd.Series([10, 5, 12]))
    assert found.to_dict() == {0: 1, 5: 2, 10: 1, 12: 0}


def test_the_picture_is_of_a_pass_that_is_shown(spac: Spac, simulated: RunLog) -> None:
    typical = typical_pass(simulated.passes)
    spans = ((0, typical - 1), (1, typical - 2))
    for first, last in spans:  # the typical pass of the run lies in neither
        assert spac("timeline", f"passes={first}:{last}").code == 0
        (picture,) = LATEST.glob("*.png")
        assert first <= int(picture.stem.rsplit("-", 1)[1]) <= last


def test_a_span_without_decoding_is_drawn_all_the_same(spac: Spac, simulated: RunLog) -> None:
    assert spac("timeline", "passes=0:0").code == 0
    assert [path.stem for path in LATEST.glob("*.png")] == ["1-binary_prefetch-pass-0"]
