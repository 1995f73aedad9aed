"""A lower bound from prices: the linear program of simulator.bound_program with copies and
residents counted per pass, solved from its dual side. Fast enough for whole requests of big models.

Relaxed program, per expert e and pass p: r = share resident when the pass begins, f = share copied
during it, u = share computed on the GPU; per pass and layer its time T.

    minimise sum T
    u_ep <= r_ep + f_ep      r_e,p+1 <= r_ep + f_ep      sum_e r_ep <= capacity        (price mu_p)
    idle_p + sum_k T_pk >= copy * sum_e f_ep                                       (price lambda_p)
    T_pk >= fixed + sum g u     T_pk >= fixed + sum c (1 - u)     (prices of the lanes, theta_pk)
    serial: T_pk >= fixed + sum [g u + c (1 - u)]

It is never above the program by stages: add up a pass of any feasible point of that one (r of its
first stage, f summed) and every line here holds, because r and f of a stage telescope to those of
the pass. For any prices >= 0 with lanes and link of a layer adding up to 1, moving the priced lines
into the objective can only lower the optimum (weak duality), and what is left falls apart into one
shortest path per expert: at each activation held or not, between two activations kept (mu of each
pass) or copied again (lambda * copy). The value at any prices is a valid bound; the search for good
ones (Adam on the supergradient) decides only how high it is. At the best prices it equals the
relaxed program, whose paths have integral extreme points.
"""

from __future__ import annotations

import math

import numpy as np

from simulator.expert_prices import best_value
from simulator.relaxed_request import RelaxedRequest

STEPS = 120


def relaxed_bound(
    request: RelaxedRequest, capacity: int, copy_ns: int, serial: bool, steps: int = STEPS
) -> int:
    """Time in ns below which no schedule can play the passes of `request`, however it begins."""
    passes, layers = len(request.idle_ns), len(request.fixed_ns)
    prices = np.concatenate(
        [np.full(passes, 0.05), np.full(passes, 0.3), np.full(layers, 0.5)]
    )  # of a slot in units of copy_ns, of the link, of the GPU lane
    value = best_value(request, float(capacity), float(copy_ns), serial, prices, steps)
    return max(0, math.floor(value))
