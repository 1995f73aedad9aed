"""Lower bounds on decode time that hold for every policy, clairvoyant or not.

Relaxation: copies may be split, stop and go on; decisions, contention, credits and priced needs
cost nothing; whatever is resident when a block of passes begins is free. Any schedule that the
engines can play is a feasible point, so the optimum of the linear program is a lower bound, and so
is the objective of any dual point, which is what is reported.

fast: prices over whole requests (simulator.relaxed_bound, simulator.window_bound), milliseconds a
request. lp: the linear program by stages over blocks of passes as well, the higher of the two;
seconds a request.
"""

from __future__ import annotations

from typing import Literal, get_args

from policies.costs import CostTable
from policies.errors import UserError
from simulator.bound_stages import request_stages
from simulator.relaxed_bound import relaxed_bound
from simulator.relaxed_request import relaxed_request
from simulator.requirements import check_gamma
from simulator.settings import SimulationSettings
from simulator.window_bound import window_bound
from traces.replay import Replay

Method = Literal["fast", "lp"]


def decode_bound(
    replay: Replay,
    costs: CostTable,
    settings: SimulationSettings,
    any_window: bool = False,
    method: Method = "fast",
) -> int:
    """Decode time in ns of the measured requests (warm-up apart) below which no policy can get.

    `any_window`: for policies that choose windows of 0..settings.gamma themselves; otherwise every
    pass has settings.gamma, and a trace with a fixed window always has that.
    """
    if method not in get_args(Method):
        raise UserError(f"bound={method}: there are {', '.join(get_args(Method))}")
    check_gamma(replay, settings.gamma)
    requests = replay.request_ids[: settings.requests][settings.warmup_requests :]
    free = any_window and replay.fixed_gamma is None and settings.gamma > 0
    bound = sum(_fast_bound(replay, one, costs, settings, free) for one in requests)
    if method == "fast":
        return bound
    # SciPy takes a fifth of a second to load, which runs without these programs do not pay.
    from simulator.exact_bound import lower_bound, window_lower_bound

    if free:
        return max(bound, window_lower_bound(replay, costs, settings, requests))
    return max(bound, lower_bound(replay, costs, settings, requests))


def _fast_bound(
    replay: Replay, request: int, costs: CostTable, settings: SimulationSettings, free: bool
) -> int:
    capacity, serial = settings.slots + settings.staging, settings.lanes == "serial"
    if free:
        return window_bound(
            replay.arrays(request), replay.model, costs, settings.gamma, capacity,
            early=settings.launch == "early", serial=serial,
        )  # fmt: skip
    stages = request_stages(replay, request, costs, settings)
    packed = relaxed_request(stages)
    return relaxed_bound(packed, capacity, costs.copy_latency_ns + costs.copy_ns, serial)
