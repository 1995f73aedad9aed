"""The linear program of a block of passes.

Per expert e that the block activates and stage k: r = share resident when the stage begins, f =
share copied during it; per active expert u = share computed on the GPU; per layer v = 1 if any
expert is computed on the CPU; per stage its time T.

    minimise sum T
    u_ek <= r_ek + f_ek          r_e,k+1 <= r_ek + f_ek          sum_e r_ek <= capacity
    u_ek + v_k >= 1              T_k >= copy * sum_e f_ek
    concurrent: T_k >= fixed_k + sum g u       T_k >= fixed_k + extra_k v_k + sum c (1 - u)
    serial:     T_k >= fixed_k + extra_k v_k + sum [g u + c (1 - u)]

v is there because a layer without CPU work does not wait for the hand-over to the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse

from simulator.bound_stages import LayerStage, PassStages

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LinearProgram:
    """minimise objective @ x, matrix @ x <= limit, lowest <= x <= highest (all finite); times in
    units of `unit_ns`."""

    objective: FloatArray
    matrix: scipy.sparse.csr_array
    limit: FloatArray
    lowest: FloatArray
    highest: FloatArray
    unit_ns: float


class _Builder:
    """Variables and constraints of a program, added one group at a time."""

    def __init__(self) -> None:
        self.lowest: list[FloatArray] = []
        self.highest: list[FloatArray] = []
        self.variables = 0
        self.limits: list[FloatArray] = []
        self.constraints = 0
        self._entries: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], FloatArray]] = []

    def add_variables(self, number: int, lowest: float, highest: float) -> npt.NDArray[np.int64]:
        """Their indices, int64 [number]."""
        self.lowest.append(np.full(number, lowest))
        self.highest.append(np.full(number, highest))
        self.variables += number
        return np.arange(self.variables - number, self.variables)

    def add_each(self, terms: Sequence[tuple[npt.NDArray[np.int64], float]], limit: float) -> None:
        """For each i: sum of coefficient * x[indices[i]] over `terms` <= limit."""
        number = len(terms[0][0])
        rows = np.arange(self.constraints, self.constraints + number)
        for indices, coefficient in terms:
            self._entries.append((rows, indices, np.full(number, coefficient)))
        self.limits.append(np.full(number, limit))
        self.constraints += number

    def add_sum(
        self, terms: Sequence[tuple[npt.NDArray[np.int64], FloatArray | float]], limit: float
    ) -> None:
        """One constraint: sum of coefficients * x[indices] over `terms` <= limit."""
        for indices, coefficients in terms:
            values = np.broadcast_to(np.asarray(coefficients, float), indices.shape)
            self._entries.append((np.full(len(indices), self.constraints), indices, values))
        self.limits.append(np.array([limit]))
        self.constraints += 1

    def matrix(self) -> scipy.sparse.csr_array:
        """float64 [constraints, variables]."""
        rows, columns, values = (np.concatenate(part) for part in zip(*self._entries, strict=True))
        shape = (self.constraints, self.variables)
        return scipy.sparse.csr_array((values, (rows, columns)), shape=shape)


def block_program(
    passes: Sequence[PassStages], capacity: int, copy_ns: int, serial: bool
) -> LinearProgram:
    """The program of consecutive `passes`; `capacity`: slots and staging buffers."""
    keys = np.unique(np.concatenate([layer.experts for one in passes for layer in one.layers]))
    # Times near 1 suit the solver's tolerances, however long a copy takes.
    unit = float(max(1, max(layer.fixed_ns for one in passes for layer in one.layers)))
    builder, copy = _Builder(), copy_ns / unit
    times = []
    before: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None = None
    for one in passes:
        for stage in (None, *one.layers):
            if stage is None and one.idle_ns == 0:
                continue
            resident = builder.add_variables(len(keys), 0.0, 1.0)
            copied = builder.add_variables(len(keys), 0.0, 1.0)
            if before is not None:
                builder.add_each([(resident, 1.0), (before[0], -1.0), (before[1], -1.0)], 0.0)
            before = resident, copied
            builder.add_sum([(resident, 1.0)], float(capacity))
            if stage is None:
                least = one.idle_ns
                time = builder.add_variables(1, least / unit, least / unit + copy * len(keys))
            else:
                least = stage.fixed_ns
                lanes_ns = stage.cpu_extra_ns + int((stage.gpu_ns + stage.cpu_ns).sum())
                most = (least + lanes_ns) / unit + copy * len(keys)
                time = builder.add_variables(1, least / unit, most)
                places = np.searchsorted(keys, stage.experts)
                _add_layer(builder, stage, time, resident[places], copied[places], unit, serial)
            builder.add_sum([(copied, copy), (time, -1.0)], 0.0)
            times.append(time)
    objective = np.zeros(builder.variables)
    objective[np.concatenate(times)] = 1.0
    return LinearProgram(
        objective, builder.matrix(), np.concatenate(builder.limits),
        np.concatenate(builder.lowest), np.concatenate(builder.highest), unit,
    )  # fmt: skip


def _add_layer(
    builder: _Builder,
    stage: LayerStage,
    time: npt.NDArray[np.int64],
    resident: npt.NDArray[np.int64],
    copied: npt.NDArray[np.int64],
    unit: float,
    serial: bool,
) -> None:
    """Constraints of one layer; `resident`, `copied`: variables of its active experts."""
    number = len(stage.experts)
    on_gpu = builder.add_variables(number, 0.0, 1.0)
    any_cpu = builder.add_variables(1, 0.0, 1.0)
    builder.add_each([(on_gpu, 1.0), (resident, -1.0), (copied, -1.0)], 0.0)
    builder.add_each([(on_gpu, -1.0), (np.repeat(any_cpu, number), -1.0)], -1.0)
    gpu, cpu = stage.gpu_ns / unit, stage.cpu_ns / unit
    fixed, extra = stage.fixed_ns / unit, stage.cpu_extra_ns / unit
    all_cpu = -fixed - float(cpu.sum())
    if serial:
        builder.add_sum([(on_gpu, gpu - cpu), (any_cpu, extra), (time, -1.0)], all_cpu)
    else:
        builder.add_sum([(on_gpu, gpu), (time, -1.0)], -fixed)
        builder.add_sum([(on_gpu, -cpu), (any_cpu, extra), (time, -1.0)], all_cpu)
