"""The report in a real browser: no network, no overflow on a phone, printable."""

import re
from pathlib import Path

import pytest

from tests.experiments.browser import Browser, find_browser
from tests.experiments.report_pages import report_html, report_rows

FOUND = find_browser()
pytestmark = pytest.mark.skipif(
    FOUND is None, reason="no Chromium on PATH; apt-get install chromium"
)
PHONE, DESK = 360, 1280


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    rows = report_rows((0.1, 0.17), (2, 4))
    long = {"code": "code_written_by_somebody", "window_oracle": "no_speculation window_oracle"}
    rows = rows.replace({"workload": long, "policy": long})
    path.write_text(report_html(rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    assert FOUND is not None
    found = Browser(FOUND, tmp_path_factory.mktemp("browser"))
    if not found.works():
        pytest.skip(f"{FOUND} --version fails")
    return found


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_nothing_lies_beside_the_window(browser: Browser, page: Path, width: int) -> None:
    found = browser.layout(page.read_text(encoding="utf-8"), width)
    assert found.content <= found.width <= width
    assert found.styled == "auto" and found.text >= 16
    assert found.drawn == found.images >= 7
    if width == DESK:
        assert found.wide == [] and found.hints == 0
    else:  # pictures and wide tables scroll in boxes of their own
        assert len(found.wide) > found.images == found.hints


def test_overflow_would_be_seen(browser: Browser, page: Path) -> None:
    wide = page.read_text(encoding="utf-8").replace("<h1>", f"<table><tr><td>{'x' * 400}</td>", 1)
    found = browser.layout(wide.replace("overflow-wrap: break-word", ""), PHONE)
    assert found.styled == "visible"  # the styles were changed, so their hash forbids them
    found = browser.layout(
        page.read_text(encoding="utf-8").replace("<main>", f"<main><table><td>{'x' * 400}</table>"),
        PHONE,
    )
    assert found.content > found.width


def test_loading_the_page_asks_the_network_for_nothing(browser: Browser, page: Path) -> None:
    asked, console = browser.visit(page)
    assert asked == set() and console == ""


def test_foreign_addresses_are_refused_and_would_be_seen(
    browser: Browser, page: Path, tmp_path: Path
) -> None:
    text = page.read_text(encoding="utf-8")
    foreign = text.replace(
        "<main>", '<main><img src="http://foreign.test/x.png"><script>1</script>'
    )
    (tmp_path / "foreign.html").write_text(foreign, encoding="utf-8")
    asked, console = browser.visit(tmp_path / "foreign.html")
    assert asked == set()
    assert "foreign.test" in console and "script" in console
    unprotected = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", foreign)
    (tmp_path / "unprotected.html").write_text(unprotected, encoding="utf-8")
    asked, _ = browser.visit(tmp_path / "unprotected.html")
    assert asked == {"http://foreign.test/x.png"}


def test_printing_gives_pages(browser: Browser, page: Path) -> None:
    pdf = browser.printed(page)
    assert pdf.startswith(b"%PDF-")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 20
