"""The page as text: what it says, what it never holds, and what it refuses."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from experiments.report_page import validation_part
from experiments.report_page.picture import png_picture
from experiments.report_page.validation_part import read_validation
from experiments.tables import write_table
from policies.errors import UserError
from tests.experiments.conftest import Spac
from tests.experiments.report_pages import RECORD, report_html, report_page, report_rows

HOSTILE = "<script>alert(1)</script>\" onload='x'"


class Elements(HTMLParser):
    """Tags and attributes of a page, and whether its tags are closed in order."""

    VOID = ("meta", "link", "img")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self._open: list[str] = []
        self.feed(page)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page.split("</style>")[1]).split())


def test_it_holds_everything_and_nothing_foreign() -> None:
    page = report_html(report_rows((0.1, 0.17), (2, 4)))
    elements = Elements(page)
    assert not {"script", "iframe", "object", "form", "base"} & set(elements.tags)
    addresses = [value for name, value in elements.attributes if name in ("src", "href")]
    assert len(addresses) > 10
    assert all(value.startswith(("data:", "#")) for value in addresses if value is not None)
    assert not {name for name, _ in elements.attributes if name == "style" or name[:2] == "on"}
    style = page.split("<style>")[1].split("</style>")[0]
    assert "url(" not in style and "@import" not in style
    targets = {value for name, value in elements.attributes if name == "id"}
    assert {value[1:] for value in addresses if value and value[0] == "#"} <= targets


def test_it_says_what_was_found_and_what_was_run() -> None:
    text = text_of(report_html(report_rows((0.1, 0.17), (2, 4))))
    assert text.startswith("spac is fastest spac wins (mean over 8 settings), 25.0% faster than")
    for word in (
        "simulated from the hardware profile", "at least 40.0% of what is possible", "ab" * 32,
        "25,100,000,000", "torch absent", "parameters.levels 5", "not set",
        "spac run winner=out/winner.yaml", "No validation was given",
    ):  # fmt: skip
        assert word in text, word
    assert "/home/somebody" not in text and "code " + "ab" * 32 in text


def test_every_picture_has_words_for_who_cannot_see_it() -> None:
    page = report_html(report_rows((0.1, 0.17), (2, 4)))
    pictures = re.findall(r'<img src="data:image/svg\+xml;base64,[^"]+" alt="([^"]+)">', page)
    assert len(pictures) == page.count("<img") == 8
    assert all(len(alt) > 60 for alt in pictures)
    assert any(alt.startswith("Hits of spac go from 20%") for alt in pictures)


def test_names_from_files_are_text_and_no_code() -> None:
    rows = report_rows().replace({"workload": {"code": HOSTILE}, "policy": {"spac": HOSTILE}})
    page = report_html(rows)
    Elements(page)
    assert HOSTILE not in page and "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_the_same_rows_give_the_same_page() -> None:
    assert report_html(report_rows()) == report_html(report_rows())


def test_the_winner_stands_out_at_its_setting_and_the_others_follow() -> None:
    page = report_page(report_rows((0.1, 0.17), (2, 4)), {})
    (table,) = page.ranking
    assert "cache ratio 17%, gamma 4" in table.title
    assert [row.cells[0] for row in table.rows if row.first] == ["spac"]
    assert len(page.other_settings) == 3 and not page.sweep_pictures


def test_what_is_missing_is_said() -> None:
    rows = report_rows(bounded=False).drop(columns="hits_by_layer").assign(prefetches=0)
    missing = " ".join(report_page(rows, {}).missing)
    for word in ("pictures=false", "no hits by layer", "no bounds", "No policy of this comparison"):
        assert word in missing
    assert not report_page(report_rows()).missing


def test_an_interrupted_comparison_is_called_provisional() -> None:
    rows = report_rows(bounded=False)
    text = text_of(report_html(rows[:-1]))  # without window_oracle on prose
    assert text.startswith("spac is fastest so far Provisional, the comparison was interrupted: ")
    assert "Provisional: the comparison was interrupted after 9 rows." in text
    assert "Provisional: spac is fastest so far at 17% cache" in text and "no bounds" in text
    labels = [label for label, _ in report_page(rows[:-1], {}).figures]
    assert labels == ["tokens per second, mean over workloads", "faster than lru_cpu"]


def validation(folder: Path, **changes: object) -> Path:
    policy = {
        "policy": "lru_cpu", "predicted_seconds": 1.0, "measured_seconds": 1.25, "error": -0.2,
        "noise": 0.01, "measured_hit_rate": 0.5, "hit_difference_points": 0.7,
        "bytes_difference": 0.0, "logical_exact": True,
    } | changes  # fmt: skip
    clock = {
        "name": "unpadded", "note": "on the stand-in", "policies": [policy],
        "verdicts": ["unpadded: error at most 15%: MISSED by lru_cpu"],
    }  # fmt: skip
    folder.mkdir(exist_ok=True)
    (folder / "validation.json").write_text(json.dumps([clock]))
    return folder


def test_a_validation_is_shown_with_its_failures(tmp_path: Path) -> None:
    (clock,) = read_validation(str(validation(tmp_path / "v"))) or []
    assert clock.verdicts == ["error at most 15%: MISSED by lru_cpu"]
    (row,) = clock.table.rows
    assert row.cells == [
        "lru_cpu", "1.00", "1.25", "-20.0%", "1.0%", "50.0%", "+0.7", "+0.0%", "yes",
    ]  # fmt: skip
    assert clock.picture is None


def test_a_validation_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none/validation.json: no such file; give the output"):
        read_validation(str(tmp_path / "none"))
    for changes in ({"error": "x"}, {"noise": None}):
        with pytest.raises(UserError, match="not what spac validate writes"):
            read_validation(str(validation(tmp_path / "v", **changes)))
    for text in ("{", "[1]", '[{"name": "x"}]', "3"):
        (tmp_path / "v" / "validation.json").write_text(text)
        with pytest.raises(UserError, match="not what spac validate writes"):
            read_validation(str(tmp_path / "v"))


def test_the_kept_validation_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation_part, "KEPT", tmp_path / "kept")
    assert read_validation(None) is None
    validation(tmp_path / "kept")
    assert read_validation(None)


def test_a_picture_must_be_one(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"<svg/>")
    with pytest.raises(UserError, match=r"a.png: not a PNG picture"):
        png_picture(tmp_path / "a.png", "title", "caption")


def test_the_command_writes_page_and_figures(spac: Spac, dense_trace: Path, tmp_path: Path) -> None:
    words = ("policy=[spac,lru_cpu,belady]", "cache_ratio=[0.2,0.4]", "gamma=[1,2]", "workers=1")
    assert spac("compare", f"trace={dense_trace}", *words, "pictures=false").code == 0
    kept = pd.read_parquet("outputs/compare/1/table.parquet")
    assert {len(rates) for rates in kept["hits_by_layer"]} == {3}
    assert "hits_by_layer" not in pd.read_csv("outputs/compare/1/table.csv")
    validation(tmp_path / "v")
    outcome = spac("report", f"validation={tmp_path / 'v'}")
    assert outcome.code == 0, outcome.err
    folder = Path("outputs/report/1")
    assert f"{folder}/report.html" in outcome.out
    page = (folder / "report.html").read_text(encoding="utf-8")
    Elements(page)
    text = text_of(page)
    assert "MISSED by lru_cpu" in text and "No validation" not in text
    assert f"The validation in {tmp_path / 'v'}." in text
    stems = {path.stem for path in folder.glob("*.png")}
    assert {"stalls", "placements", "hits_by_policy", "tps_over_gamma", "verify_pass_lanes"} < stems
    assert stems == {path.stem for path in folder.glob("*.pdf")}
    assert page.count("<img") == len(stems)
    # Again: the same page but for the folder of the winner.
    assert spac("report", f"validation={tmp_path / 'v'}").code == 0
    again = Path("outputs/report/2/report.html").read_text(encoding="utf-8")
    assert again.replace("outputs/report/2", "outputs/report/1") == page


def test_without_pictures_the_page_has_tables(
    spac: Spac, dense_trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation_part, "KEPT", tmp_path / "kept")
    words = ("policy=[spac,lru_cpu]", "cache_ratio=0.3", "gamma=1", "workers=1", "bound=none")
    assert spac("compare", f"trace={dense_trace}", *words, "pictures=false").code == 0
    assert spac("report", "pictures=false").code == 0
    folder = Path("outputs/report/1")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "pictures=false" in text_of(page) and "<img" not in page
    assert not list(folder.glob("*.p[nd][gf]"))
    assert "give the output folder of spac validate" in spac("report", "validation=none").error


def test_what_is_no_comparison_is_refused(spac: Spac) -> None:
    folder = Path("other")
    folder.mkdir()
    write_table(folder, pd.DataFrame({"policy": ["x"], "error": [0.1]}))
    (folder / "run.json").write_text(json.dumps(RECORD | {"command": "validate"}))
    error = spac("report", "other").error
    assert error.startswith("other: this table of spac validate has no column cache_ratio, ")
    for text, words in (
        ("{", "not valid JSON"),
        ("[]", "expected a JSON object"),
        ("{}", "not of an output folder"),
    ):
        (folder / "run.json").write_text(text)
        assert words in spac("report", "other").error
    assert not Path("outputs").exists()
