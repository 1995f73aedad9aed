"""Tells the session and the log what the decoding loop does; the loop itself knows neither."""

from collections.abc import Sequence

from runtime.device import Device
from runtime.layer_driver import LayerDriver
from runtime.measured_log import MeasuredLog
from runtime.observed_session import ObservedSession
from runtime.pace import Pace
from runtime.pass_listener import PassListener
from runtime.transfers import Transfers
from runtime.verify_rules import Verdict


class OffloadListener(PassListener):
    """Plugs the offloading engine into `SpeculativeDecoder`."""

    def __init__(
        self,
        device: Device,
        observed: ObservedSession,
        driver: LayerDriver,
        transfers: Transfers,
        log: MeasuredLog,
        pace: Pace,
    ) -> None:
        self._device, self._observed, self._driver = device, observed, driver
        self._transfers, self._log, self._pace = transfers, log, pace
        self._request = 0
        self._since_ns = 0

    def start_request(self, request: int, prompt: Sequence[int]) -> None:
        self._request = request
        self._driver.prefill = True
        self._log.begin_pass(request, self._device.clock_ns())
        self._observed.start_request(prompt)

    def after_prefill(self, prompt: Sequence[int], token: int, margin: float) -> None:
        self._driver.prefill = False
        self._driver.context = len(prompt)
        self._log.end_prefill(len(prompt), self._device.clock_ns())

    def start_forced_request(self, request: int, length: int) -> None:
        """A request whose text is `length` tokens long and whose prompt is not played."""
        self._request = request
        self._driver.prefill = False
        self._driver.context = length
        self._observed.start_request(())

    def start_pass(self, last_token: int, gamma_max: int) -> int:
        begin = self._device.clock_ns()
        gamma = min(self._observed.start_pass(last_token), gamma_max)
        self._log.begin_pass(self._request, begin, gamma)
        self._since_ns = begin
        return gamma

    def draft_step(self, step: int, token: int, margin: float) -> None:
        self._since_ns = self._pace.draft_step(self._since_ns) or self._device.clock_ns()
        self._pace.drafted(self._since_ns)
        decided = self._observed.draft_step(self._log.pass_index, step, token)
        self._log.draft(step, token, self._since_ns, decided)

    def before_verify(self, rows: Sequence[int]) -> None:
        # Paced, a pass begins to verify where its last draft step should have ended.
        since = self._since_ns if self._pace.keeps_time else self._device.clock_ns()
        self._driver.start_verify(since)
        self._log.before_verify(len(rows), since)

    def after_verify(self, start: int, rows: Sequence[int], verdict: Verdict) -> None:
        self._log.starts_at(start)

    def end_pass(self, accepted: int, committed: Sequence[int]) -> None:
        self._observed.end_pass(accepted)
        ended = self._pace.head(self._driver.settle()) or self._device.clock_ns()
        self._log.end_pass(accepted, len(committed), ended)
        self._driver.context += len(committed)
        self._log.copies(self._transfers.take_records())
