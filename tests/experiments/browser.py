"""A headless Chromium by its command line: lays a page out, prints it, watches its network."""

import html
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr",
)  # fmt: skip
NO_PAGE = "not an origin"
ON_NETWORK = re.compile(r"(https?|wss?|ftp):")
SECONDS = 240  # for a machine that is busy with other things
# The page lies in a frame as wide as a phone; the script beside it measures and writes into its own
# document, which Chromium then prints.
PROBE = """<!DOCTYPE html><html><body style="margin:0">
<iframe id="page" style="border:0" width="{width}" height="800" srcdoc="{page}"></iframe>
<script>
addEventListener("load", () => {{
  const page = document.getElementById("page").contentDocument, root = page.documentElement;
  const boxes = [...page.querySelectorAll(".scroll")];
  const images = [...page.images];
  document.body.dataset.found = JSON.stringify({{
    width: root.clientWidth, content: Math.max(root.scrollWidth, page.body.scrollWidth),
    wide: boxes.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.ariaLabel),
    hints: [...page.querySelectorAll(".hint")].filter(one => one.offsetHeight > 0).length,
    images: images.length, drawn: images.filter(one => one.naturalWidth > 0).length,
    styled: page.defaultView.getComputedStyle(page.querySelector(".scroll")).overflowX,
    text: parseFloat(page.defaultView.getComputedStyle(page.querySelector("p")).fontSize),
  }});
}});
</script></body></html>"""


@dataclass(frozen=True)
class Layout:
    """CSS pixels: of the window and of what lies in it. `wide`: names of the boxes that scroll by
    themselves; `hints`: lines on the screen that say so; `drawn`: images that were
    decoded; `text`: size of ordinary text."""

    width: int
    content: int
    wide: list[str]
    hints: int
    images: int
    drawn: int
    styled: str
    text: float


class Browser:
    """Chromium with a profile and files of its own in `folder`."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._folder = folder

    def works(self) -> bool:
        """False for a stub that only says how to install one."""
        said = subprocess.run(
            [self._program, "--version"], capture_output=True, timeout=SECONDS, check=False
        )
        return said.returncode == 0

    def layout(self, page: str, width: int) -> Layout:
        """`page`, a text of HTML, in a window of `width` CSS pixels."""
        probe = self._folder / f"probe-{width}.html"
        probe.write_text(PROBE.format(width=width, page=html.escape(page)), encoding="utf-8")
        document = self._call("--dump-dom", f"--window-size={max(width, 600)},900", probe.as_uri())
        (found,) = re.findall(r'data-found="([^"]*)"', document.stdout)
        return Layout(**json.loads(html.unescape(found)))

    def printed(self, page: Path) -> bytes:
        """The PDF that printing `page` gives."""
        target = self._folder / "printed.pdf"
        self._call("--no-pdf-header-footer", f"--print-to-pdf={target}", page.as_uri())
        return target.read_bytes()

    def visit(self, page: Path) -> tuple[set[str], str]:
        """(addresses on the network that loading `page` asked for, lines of its console)."""
        record = self._folder / "network.json"
        done = self._call("--dump-dom", f"--log-net-log={record}", page.as_uri())
        events = [one.get("params", {}) for one in json.loads(record.read_text())["events"]]
        # What the browser itself looks up has no page as its initiator.
        asked = {
            one["url"]
            for one in events
            if one.get("initiator", NO_PAGE) != NO_PAGE and ON_NETWORK.match(one.get("url", ""))
        }
        console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        return asked, "\n".join(console)

    def _call(self, *words: str) -> subprocess.CompletedProcess[str]:
        profile = f"--user-data-dir={self._folder / 'profile'}"
        done = subprocess.run(
            [self._program, *QUIET, profile, *words],
            capture_output=True, text=True, timeout=SECONDS, check=False,
            env={**os.environ, "HOME": str(self._folder)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        return done


def find_browser() -> str | None:
    """A Chromium on PATH."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)
