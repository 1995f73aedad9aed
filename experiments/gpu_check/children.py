"""Runs a section in a child process, within its time, and says how it ended."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LAST_WORDS = 2000
PASSED, FAILED, TIMED_OUT, NO_TIME = "passed", "failed", "timed out", "no time left"


@dataclass
class Child:
    """A section that runs."""

    name: str
    seconds: float
    result: Path
    process: subprocess.Popen[str]
    begin: float

    def finish(self) -> dict[str, Any]:
        """Wait as long as the section may take; status, seconds, and result or error."""
        left = self.begin + self.seconds - time.monotonic()
        try:
            output, _ = self.process.communicate(timeout=max(0.1, left))
        except subprocess.TimeoutExpired:
            self.stop()
            output, _ = self.process.communicate()
            return self._ended(TIMED_OUT, {"error": f"not done after {self.seconds:.0f} s"}, output)
        told = json.loads(self.result.read_text("utf-8")) if self.result.is_file() else {}
        if self.process.returncode == 0 and "error" not in told:
            return self._ended(PASSED, told, "")
        told.setdefault("error", f"ended with exit code {self.process.returncode}")
        return self._ended(FAILED, told, output)

    def stop(self) -> None:
        """Kill the child and whatever it started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)

    def _ended(self, status: str, told: dict[str, Any], output: str) -> dict[str, Any]:
        ended: dict[str, Any] = {
            "status": status,
            "seconds": round(time.monotonic() - self.begin, 1),
            "allowed_seconds": round(self.seconds, 1),
            **told,
        }
        if output.strip():
            ended["last_output"] = output[-LAST_WORDS:]
        return ended


def start(name: str, words: list[str], seconds: float, folder: Path) -> Child:
    """Start section `name` in a session of its own."""
    result = folder / f"{name}.json"
    command = [sys.executable, "-m", "experiments.gpu_check", "--section", name, *words]
    process = subprocess.Popen(
        [*command, "--out", str(result)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    return Child(name, seconds, result, process, time.monotonic())
