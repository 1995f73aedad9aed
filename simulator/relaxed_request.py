"""RelaxedRequest: the passes of one request as the relaxed bound sees them, in flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from simulator.bound_stages import PassStages

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class RelaxedRequest(NamedTuple):
    """P passes of L layers, E experts that any pass activates, A activations sorted by expert, then
    pass. Times in ns.

    begin int64 [E + 1]: activations of expert e are begin[e]..begin[e + 1]; pass_of int64 [A];
    layer_of int64 [A]: pass * L + layer; gpu_ns, cpu_ns float64 [A]; idle_ns float64 [P];
    fixed_ns float64 [P * L].

    cpu_ns holds an even share of the hand-over to the host: the hand-over is paid in full if any
    expert of the layer is on the CPU, so at least to the mean share on the CPU.
    """

    begin: IntArray
    pass_of: IntArray
    layer_of: IntArray
    gpu_ns: FloatArray
    cpu_ns: FloatArray
    idle_ns: FloatArray
    fixed_ns: FloatArray


def relaxed_request(stages: Sequence[PassStages]) -> RelaxedRequest:
    """Packs consecutive passes."""
    layers = [layer for one in stages for layer in one.layers]
    sizes = np.array([len(layer.experts) for layer in layers])
    keys = np.concatenate([layer.experts for layer in layers])
    gpu_ns = np.concatenate([layer.gpu_ns for layer in layers]).astype(float)
    cpu_ns = np.concatenate(
        [layer.cpu_ns + layer.cpu_extra_ns / len(layer.experts) for layer in layers]
    )
    layer_of = np.repeat(np.arange(len(layers)), sizes)
    order = np.argsort(keys, kind="stable")
    _, activations = np.unique(keys, return_counts=True)
    return RelaxedRequest(
        begin=np.concatenate([[0], np.cumsum(activations)]),
        pass_of=layer_of[order] // len(stages[0].layers),
        layer_of=layer_of[order],
        gpu_ns=gpu_ns[order],
        cpu_ns=cpu_ns[order],
        idle_ns=np.array([one.idle_ns for one in stages], float),
        fixed_ns=np.array([layer.fixed_ns for layer in layers], float),
    )
