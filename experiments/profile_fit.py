"""A hardware profile from a calibration: rates fitted to the measured curves, and the times
themselves, which count for the model that was measured.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from policies.errors import UserError
from runtime.calibration import Calibration
from runtime.calibration_points import Point
from simulator.hardware import HardwareProfile, hardware_profile
from simulator.model_profile import ModelProfile


def profile_values(
    name: str, calibration: Calibration, model: ModelProfile, base: HardwareProfile
) -> dict[str, Any]:
    """The profile as plain data. `base` gives what is not measured: VRAM and what is reserved."""
    times, size = calibration.times, calibration.times.expert_bytes
    flops = 6 * times.hidden * times.expert_width
    cpu_rate, cpu_flops = _rates(calibration.curve("expert, CPU"), size, flops)
    gpu_rate, gpu_flops = _rates(calibration.curve("expert, GPU"), size, flops)
    latency, link_rate = calibration.link
    fixed = max(0, times.dense_ns[0] - round(1e9 * model.layer_bytes / gpu_rate))
    values = {
        "name": name,
        "link": {
            "latency_ns": max(0, round(latency)),
            "bytes_per_second": float(round(link_rate)),
            "pinned": base.link.pinned,
        },
        "gpu": {
            "vram_bytes": base.gpu.vram_bytes,
            "reserved_bytes": base.gpu.reserved_bytes,
            "bytes_per_second": float(round(gpu_rate)),
            "expert_efficiency": 1.0,
            "dense_efficiency": 1.0,
            "flops": float(round(gpu_flops)),
            "expert_launch_ns": 0,
            "layer_launch_ns": fixed,
        },
        "cpu": {
            "bytes_per_second": float(round(cpu_rate)),
            "expert_fixed_ns": 0,
            "flops": float(round(cpu_flops)),
            "contention": times.contention,
        },
        "handover": {
            "router_ns": 0,
            "d2h_ns": times.d2h_ns,
            "dispatch_ns": times.dispatch_ns,
            "return_ns": times.return_ns,
        },
        "decision": {
            "layer_ns": times.decision_layer_ns,
            "leave_ns": times.decision_leave_ns,
            "draft_ns": times.decision_draft_ns,
        },
        "needs": dict(
            zip(
                ("router_mass_ns", "next_layer_1_ns", "next_layer_2_ns", "next_layer_3_ns",
                 "draft_tokens_ns"),
                times.needs_ns, strict=True,
            )
        ),
        "measured": {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(times).items()
        },
    }  # fmt: skip
    hardware_profile(values, "the calibrated profile")
    return values


def about_lines(calibration: Calibration) -> list[str]:
    """Comment above the profile: machine, versions, how well it fits, what it does not know."""
    machine = ", ".join(f"{key} {value}" for key, value in calibration.machine.items())
    errors = ", ".join(f"{name} {error:.1%}" for name, error in calibration.errors().items())
    levels = ", ".join(f"{name} {factor:.2f}" for name, factor in calibration.levels.items())
    return [
        f"Measured by spac calibrate on: {machine}.",
        f"Mean error at points kept out of the fits: {errors}.",
        f"Experts and dense parts mixed as a policy mixes them, against alone: {levels}.",
        "`measured` counts for experts of the size measured; for other models the rates above it",
        "extrapolate. vram_bytes and reserved_bytes were not measured.",
        *calibration.notes,
    ]


def _rates(points: Sequence[Point], size: int, flops: int) -> tuple[float, float]:
    """(bytes per second, flops per second) of time(n) = max(size / rate, n * flops / speed), by
    least squares of the logarithm.
    """
    if not points:
        raise UserError("calibration: no measurement of experts")
    rows = np.array([one.x for one in points], np.float64)
    seconds = np.array([max(1, one.median_ns) for one in points], np.float64) / 1e9
    start = [np.log(size / seconds[0]), np.log(rows[-1] * flops / seconds[-1])]

    def residual(logs: np.ndarray) -> np.ndarray:
        rate, speed = np.exp(logs)
        return np.asarray(np.log(np.maximum(size / rate, rows * flops / speed) / seconds))

    rate, speed = np.exp(least_squares(residual, start, loss="soft_l1").x)
    return float(rate), float(speed)
