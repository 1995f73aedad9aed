"""The GPU check itself, on the stand-in: its sections, its process, what it may import."""

import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from experiments.gpu_check import children
from experiments.gpu_check.__main__ import main
from experiments.gpu_check.sections import SECTIONS
from experiments.gpu_check.setup import Setup
from experiments.host_overhead import idle_core, layer_overhead, link_use, played
from experiments.idle_devices import BareDevice, IdleDevice
from policies.zoo.lru_fetch import lru_fetch
from runtime.device import COMPUTE
from runtime.plans import compare_plans, plans_of

ROOT = Path(__file__).parents[2]
SMALL = Setup("standin", small=True)
EVERY_SECTION = pytest.mark.parametrize("section", SECTIONS, ids=lambda one: one.name)
torch.set_num_threads(1)

BLOCKED = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"hydra", "omegaconf", "simpy", "pulp", "scipy", "matplotlib"}:
            raise ModuleNotFoundError(f"no {name} on the machine with the GPU")

sys.meta_path.insert(0, Missing())
from experiments.gpu_check.__main__ import main
from experiments.gpu_check.sections import SECTIONS
import experiments.host_overhead
for section in SECTIONS:
    section.load()
"""


def results(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def test_it_imports_what_the_machine_with_the_gpu_has() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-1500:]


@EVERY_SECTION
def test_each_section_gives_a_result_that_json_can_hold(section: Any) -> None:
    found = section.load()(SMALL)
    assert found and json.loads(json.dumps(found))


def test_what_the_sections_find(tmp_path: Path) -> None:
    texts = SECTIONS[6].load()(SMALL)
    assert texts["tiny"]["early"]["identical"] and texts["tiny"]["late"]["identical"]
    slots = SECTIONS[4].load()(SMALL)
    assert slots["happens_before_reports"] == 0 and slots["with_waits"][0]["wrong"] == 0
    layers = SECTIONS[7].load()(SMALL)
    early, late = layers["lru_fetch, early"], layers["lru_fetch, late"]
    assert 0 < early["hit_rate"] < 1 and early["layers_measured"] > 20
    assert late["gpu_begins_after_router_ns"] >= late["message_and_decision_ns"] * 0.5


def test_a_broken_section_is_told_and_the_others_still_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Link and machine; the link breaks because the folder of the policies' costs is gone."""
    out = tmp_path / "folder" / "check.json"
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    broken = tmp_path / "site"
    (broken / "sitecustomize.py").parent.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import sys\n"
        "if 'link' in sys.argv:\n"
        "    import experiments.gpu_check.device_sections as sections\n"
        "    sections.link = lambda setup: 1 / 0\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(broken), str(ROOT)]))
    words = ["--device", "standin", "--small", "--out", str(out), "--only", "link", "device"]
    assert main(words) == 1
    data = results(out)
    assert data["failed"] == ["link"]
    assert "ZeroDivisionError" in data["sections"]["link"]["error"]
    assert data["sections"]["device"]["status"] == "passed"
    assert len(data["sections"]["device"]["result"]["passed"]) > 5
    assert "stand-in" in data["note"]


def test_a_section_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("import time; time.sleep(60)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    child = children.start("machine", ["--device", "standin"], 1.0, tmp_path)
    ended = child.finish()
    assert ended["status"] == "timed out" and child.process.returncode is not None


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_without_a_gpu_it_does_not_begin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "check.json"
    assert main(["--only", "machine", "device", "--out", str(out)]) == 2
    assert "device=cuda: torch" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.slow
def test_the_whole_check(tmp_path: Path) -> None:
    out = tmp_path / "check.json"
    assert main(["--device", "standin", "--small", "--out", str(out)]) == 0
    data = results(out)
    assert set(data["sections"]) == {section.name for section in SECTIONS}
    assert data["failed"] == []


def test_the_idle_device_does_no_work() -> None:
    device = IdleDevice()
    event = device.run(device.stream(COMPUTE), lambda: pytest.fail("was done"))
    assert device.done(event) and device.queued["work"] == 1
    device.close()


def test_overhead_counts_what_a_layer_queues() -> None:
    replay = SMALL.replay("code", 1)
    device, settings = IdleDevice(), SMALL.settings()
    one = layer_overhead(device, replay, lru_fetch(), SMALL.costs(), settings, passes=2)
    assert one.layers == 4 and 0 < one.median_ns < 1e9
    assert one.decision_ns > 0 and one.between_ns > 0
    queued = {what: count / one.layers for what, count in device.queued.items()}
    assert queued["work"] >= 1 and queued["event"] == 1  # the sum, and the router's choice


def test_the_bare_device_is_told_the_same_decisions() -> None:
    """Otherwise what is left without the stand-in's queueing would be of another run."""
    replay, found = SMALL.replay("code", 1), []
    for device in (IdleDevice(), BareDevice()):
        costs, settings = SMALL.costs(), SMALL.settings(mode="logical")
        core = idle_core(device, replay, lru_fetch(), costs, settings)
        assert len(list(islice(played(core, replay), 3))) == 3
        core.close()
        found.append(plans_of(core.runlog()))
    assert compare_plans(*found).identical


@pytest.mark.parametrize("paced", [False, True])
def test_a_slow_link_is_what_all_wait_for(paced: bool) -> None:
    found = link_use(SMALL, "lru_fetch", paced, slowed=20.0)
    assert found["simulated_busy_share"] > 0.9
    assert 0.0 < found["busy_share"] <= 1.0  # how near it comes is for the benchmark to say
    assert found["bytes"] > 0
