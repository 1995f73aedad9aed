"""Runs a target's MoE layers: asks the session, executes its plan, logs. The prompt bypasses it."""

from typing import NamedTuple

import numpy as np
import torch

from policies.api import Routing
from policies.costs import CostTable
from runtime.device import Device
from runtime.lane_times import LaneEvents
from runtime.layer_executor import LayerExecutor, Started
from runtime.layer_inputs import LayerInputs, layer_inputs
from runtime.layer_work import decided_work, prefill_work
from runtime.measured_log import Decided, MeasuredLog
from runtime.next_layers import NextLayers
from runtime.observed_session import ObservedSession
from runtime.pace import Pace
from runtime.router_message import RouterChannel, RouterMessage
from runtime.row_groups import group_choices
from runtime.slot_table import SlotTable
from runtime.transfers import Transfers


class _Unsettled(NamedTuple):
    """A layer that was queued; when its lanes worked is not known yet."""

    layer: int
    t1_ns: int
    t2_ns: int
    entered: Decided
    left: Decided
    lanes: LaneEvents


class LayerDriver:
    """`prefill` True while the target reads a prompt. `context`: tokens before the rows of a
    pass.

    The host runs ahead of the device: it queues a layer and goes on to the next one's dense part.
    So a layer's times are taken, and logged, when the next router message is there.
    """

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
        self.context = 0
        self._device, self._observed, self._transfers = device, observed, transfers
        self._executor, self._next_layers = executor, next_layers
        self._costs, self._log, self._pace = costs, log, pace
        self._router = RouterChannel(device)
        self._table = SlotTable(observed.session, transfers)
        self._early = observed.session.shape.launch_early
        self._mass = "router_mass" in observed.session.policy.needs
        self._since_ns = 0
        self._unsettled: _Unsettled | None = None

    def start_verify(self, now_ns: int) -> None:
        """Drafting is over; the next layer is the first of its pass."""
        self._since_ns, self._unsettled = now_ns, None

    def settle(self) -> int:
        """Log the last layer; returns when it joined, or when drafting ended, in ns."""
        last, self._unsettled = self._unsettled, None
        if last is not None:
            begin = last.t1_ns if self._early else last.t2_ns
            times = last.lanes.times(self._device, begin)
            self._log.layer(
                last.layer, self._since_ns, last.t1_ns, last.t2_ns, last.entered, times, last.left
            )
            self._since_ns = times.join_ns
        return self._since_ns

    def forward(
        self, layer: int, hidden: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        """hidden [rows, H], experts and weights [rows, k] -> [rows, H]; see `experts.connect`."""
        inputs = layer_inputs(layer, hidden, experts, weights)
        return self._read_prompt(inputs) if self.prefill else self._decode(inputs)

    def _read_prompt(self, inputs: LayerInputs) -> torch.Tensor:
        hidden = inputs.hidden
        message = self._router.post(inputs.experts, None, None, hidden).wait()
        groups = group_choices(message.experts)
        self._transfers.where(self._log.pass_index, inputs.layer)
        session = self._observed.session
        work = prefill_work(inputs.layer, groups, self._costs, session, self._transfers)
        now = self._device.clock_ns()
        output, _ = self._executor.execute(work, inputs, message.hidden, groups, now)
        return output

    def _decode(self, inputs: LayerInputs) -> torch.Tensor:
        device, observed, layer = self._device, self._observed, inputs.layer
        kept = self._pace.dense(self._known_since_ns(), len(inputs.hidden), self.context)
        predicted = self._next_layers.predict(layer, inputs.hidden)
        weights = inputs.weights if self._mass else None
        posted = self._router.post(inputs.experts, weights, predicted, inputs.hidden)
        started = self._start_early(inputs) if self._early else None
        message = posted.wait()
        since_ns = self.settle()
        groups = group_choices(message.experts)
        if started is None:
            observed.snapshot(since_ns)
        else:
            self._executor.chosen(started, groups)
        t1 = kept or device.end_ns(posted.routed)
        decided = self._pace.enter(t1)
        entered = observed.enter_layer(self._log.pass_index, self._routing(layer, message))
        t2 = self._pace.until(decided) or device.clock_ns()
        work = decided_work(layer, entered.decision, observed.session, self._transfers)
        output, lanes = self._executor.execute(work, inputs, message.hidden, groups, t2, started)
        self._pace.leave(device.clock_ns())
        left = observed.leave_layer(self._log.pass_index, layer)
        self._unsettled = _Unsettled(layer, t1, t2, entered, left, lanes)
        return output

    def _start_early(self, inputs: LayerInputs) -> Started:
        self._observed.snapshot(self._known_since_ns())
        return self._executor.start(inputs, self._table.of_layer(inputs.layer))

    def _known_since_ns(self) -> int:
        """When the layer before joined; if it still runs, now is earlier than that."""
        last = self._unsettled
        if last is None:
            return self._since_ns
        if self._device.done(last.lanes.join):
            return self._device.end_ns(last.lanes.join)
        return self._device.clock_ns()

    def _routing(self, layer: int, message: RouterMessage) -> Routing:
        # Traces hold weights as float16: the policy must see the same numbers in both worlds.
        weights = message.weights
        mass = None if weights is None else weights.astype(np.float16).astype(np.float64)
        return Routing(layer, message.experts, mass, message.predicted)
