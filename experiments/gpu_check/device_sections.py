"""Sections about the device alone: what it promises, slots under reuse, the link."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from experiments.gpu_check.failure import SectionFailed
from experiments.gpu_check.setup import Setup
from runtime.device import COPY, Device
from runtime.device_checks import DEVICE_CHECKS
from runtime.hazards import HazardChecker
from runtime.slot_reuse import ForgetfulPool, Reuse, reuse_slots

KIB = 1024
SANITIZER = "TORCH_CUDA_SANITIZER"


def promises(setup: Setup) -> dict[str, Any]:
    """Every check of `runtime.device_checks`, each on a device of its own."""
    failed, passed = {}, []
    for check in DEVICE_CHECKS:
        device = setup.open()
        try:
            check(device)
            passed.append(check.__name__)
        except Exception as error:
            failed[check.__name__] = f"{type(error).__name__}: {error}"
        finally:
            device.close()
    if failed:
        raise SectionFailed(f"{len(failed)} of {len(DEVICE_CHECKS)} checks", {"failed": failed})
    return {"passed": passed, "small_messages": _small_messages(setup)}


def slots_under_reuse(setup: Setup) -> dict[str, Any]:
    """Slots overwritten as soon as the rules allow; then without the rule, to see that it shows."""
    plan = [(40, 48)] if setup.small else [(20_000, 192), (1000, 9216)]
    results, hazards = [], 0
    for fills, kib in plan:
        checker = None if setup.on_gpu else HazardChecker()
        device = setup.open(early=True, checker=checker)
        results.append(_reuse(device, reuse_slots(device, fills, expert_kib=kib), kib))
        hazards += 0 if checker is None else len(checker.hazards)
    device = setup.open(early=True)
    fills, kib = plan[-1]
    control = reuse_slots(device, fills, expert_kib=kib, pool_type=ForgetfulPool)
    found = {
        "with_waits": results,
        "happens_before_reports": "not on a GPU" if setup.on_gpu else hazards,
        "control_without_waits": _reuse(device, control, kib),
    }
    wrong = sum(one["wrong"] for one in results)
    if wrong or hazards:
        raise SectionFailed(f"{wrong} reads of foreign bytes, {hazards} hazards", found)
    return found


def sanitizer(setup: Setup) -> dict[str, Any]:
    """The reuse of slots again under torch's own race detector, which knows streams and events."""
    if not setup.on_gpu:
        return {"skipped": "torch's sanitizer watches GPU streams only"}
    code = (
        "from runtime.devices import open_device; from runtime.standin_link import Link\n"
        "from runtime.slot_reuse import ForgetfulPool, SlotPool, reuse_slots\n"
        "import sys\n"
        f"device = open_device({setup.device!r}, Link(None))\n"
        "pool = ForgetfulPool if sys.argv[1] == 'control' else SlotPool\n"
        "print(reuse_slots(device, 300, pool_type=pool)); device.close()\n"
    )
    found: dict[str, Any] = {}
    for name in ("rules", "control"):
        done = subprocess.run(
            [sys.executable, "-c", code, name],
            env={**os.environ, SANITIZER: "1"}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        reports = done.stderr.count("possible data race")
        found[name] = {"exit": done.returncode, "reports": reports, "says": done.stderr[-1500:]}
    if found["rules"]["exit"] or found["rules"]["reports"]:
        raise SectionFailed("the sanitizer reports a race, or could not run", found)
    return found


def link(setup: Setup) -> dict[str, Any]:
    """Rates of copies of many sizes; how near copies of experts come to the fastest."""
    device, most = setup.open(), (1 if setup.small else 256) * KIB * KIB
    host, there = device.alloc_host(most), device.alloc_device((most,), torch.uint8)
    expert = min(most, setup.model.bytes_of_expert())
    sizes = sorted({expert, *(1 << n for n in range(12, most.bit_length()))})
    to_device = {size: _rate(device, there, host, size) for size in sizes}
    to_host = {size: _rate(device, host, there, size) for size in sizes[-4:]}
    best = max(rate["bytes_per_second"] for rate in to_device.values())
    share = to_device[expert]["bytes_per_second"] / best
    found = {
        "host_to_device": to_device,
        "device_to_host": to_host,
        "ordinary_memory": _unlocked(setup, there),
        "copy_limit_bytes_per_second": best,
        "expert_bytes": expert,
        "experts_reach_of_limit": share,
    }
    device.close()
    return found


def _reuse(device: Device, result: Reuse, kib: int) -> dict[str, Any]:
    device.close()
    return {"fills": result.fills, "reads": result.reads, "wrong": result.wrong, "expert_kib": kib}


def _small_messages(setup: Setup) -> str:
    device = setup.open()
    device.close()
    reason = getattr(device, "mapped", None)
    if reason is None:
        return "copied: the stand-in"
    return f"copied: {reason}" if reason else "read by kernels from page-locked memory"


def _rate(device: Device, dst: torch.Tensor, src: torch.Tensor, size: int) -> dict[str, float]:
    """Median and spread of several rounds of copies one behind the other."""
    stream, count, rates = device.stream(COPY), max(2, min(20, 2**27 // size)), []
    for _ in range(5):
        events = [device.copy(dst[:size], src[:size], stream) for _ in range(count)]
        device.synchronize(events[-1])
        spent = device.end_ns(events[-1]) - device.begin_ns(events[0])
        rates.append(count * size * 1e9 / max(1, spent))
    low, middle, high = np.quantile(rates, [0.1, 0.5, 0.9]).tolist()
    return {"bytes_per_second": middle, "p10": low, "p90": high, "ns_per_copy": size * 1e9 / middle}


def _unlocked(setup: Setup, there: torch.Tensor) -> dict[str, float] | str:
    """The same bytes from memory that is not page-locked, for comparison."""
    if not setup.on_gpu:
        return "the stand-in knows no other"
    ordinary = torch.zeros(there.numel(), dtype=torch.uint8)
    synchronize: Callable[[], None] = torch.get_device_module(there.device).synchronize
    rates = []
    for _ in range(3):
        synchronize()
        begin = time.monotonic_ns()
        there.copy_(ordinary)
        synchronize()
        rates.append(ordinary.numel() * 1e9 / (time.monotonic_ns() - begin))
    return {"bytes_per_second": float(np.median(rates))}
