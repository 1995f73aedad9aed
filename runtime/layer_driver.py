"""Runs a target's MoE layers: asks the session, executes its plan, logs. The prompt bypasses it."""

import numpy as np
import torch

from policies.api import Routing
from policies.costs import CostTable
from runtime.device import Device
from runtime.layer_executor import LayerExecutor
from runtime.layer_work import decided_work, prefill_work
from runtime.measured_log import MeasuredLog
from runtime.next_layers import NextLayers
from runtime.observed_session import ObservedSession
from runtime.pace import Pace
from runtime.router_message import RouterChannel, RouterMessage
from runtime.row_groups import group_rows
from runtime.transfers import Transfers


class LayerDriver:
    """`prefill` True while the target reads a prompt. `since_ns`: end of the last join or draft."""

    def __init__(
        self,
        device: Device,
        observed: ObservedSession,
        transfers: Transfers,
        executor: LayerExecutor,
        next_layers: NextLayers,
        costs: CostTable,
        log: MeasuredLog,
        pace: Pace,
    ) -> None:
        self.prefill = False
        self.since_ns = 0
        self._device, self._observed, self._transfers = device, observed, transfers
        self._executor, self._next_layers = executor, next_layers
        self._costs, self._log, self._pace = costs, log, pace
        self._router = RouterChannel(device)
        self._mass = "router_mass" in observed.session.policy.needs

    def forward(
        self, layer: int, hidden: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        """hidden [rows, H], experts and weights [rows, k] -> [rows, H]; see `experts.connect`."""
        if not self.prefill:
            self._pace.dense(self.since_ns, len(hidden))
        t1 = self._device.clock_ns()
        predicted = None if self.prefill else self._next_layers.predict(layer, hidden)
        message = self._router.exchange(experts, weights, predicted, hidden)
        if self.prefill:
            return self._read_prompt(layer, message, hidden, weights, t1)
        return self._decode(layer, message, hidden, weights, t1)

    def _read_prompt(
        self,
        layer: int,
        message: RouterMessage,
        hidden: torch.Tensor,
        weights: torch.Tensor,
        t1: int,
    ) -> torch.Tensor:
        groups = group_rows(message.experts)
        self._transfers.where(self._log.pass_index, layer)
        session = self._observed.session
        work = prefill_work(layer, groups, self._costs, session, self._transfers)
        output, _ = self._executor.execute(work, hidden, message.hidden, weights, groups, t1)
        return output

    def _decode(
        self,
        layer: int,
        message: RouterMessage,
        hidden: torch.Tensor,
        weights: torch.Tensor,
        t1: int,
    ) -> torch.Tensor:
        observed, pass_index = self._observed, self._log.pass_index
        # Traces hold weights as float16: the policy must see the same numbers in both worlds.
        mass = message.weights.astype(np.float16).astype(np.float64) if self._mass else None
        routing = Routing(layer, message.experts, mass, message.predicted)
        entered = observed.enter_layer(pass_index, routing, self.since_ns)
        t2 = self._device.clock_ns()
        work = decided_work(layer, entered.decision, observed.session, self._transfers)
        groups = group_rows(message.experts)
        output, times = self._executor.execute(work, hidden, message.hidden, weights, groups, t2)
        left = observed.leave_layer(pass_index, layer)
        self._log.layer(layer, self.since_ns, t1, t2, entered, times, left)
        self.since_ns = times.join_ns
        return output
