"""Every device keeps the promises of the protocol; a GPU where there is one."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from offload_setup import fast_standin

from policies.errors import UserError
from runtime.device import Device
from runtime.device_checks import DEVICE_CHECKS, Check, CheckFailed
from runtime.devices import device_kind, open_device
from runtime.hazards import HazardChecker
from runtime.slot_reuse import ForgetfulPool, reuse_slots
from runtime.standin import StandIn
from runtime.standin_link import Link

FAST = Link(None, 0)
OPEN: dict[str, Callable[[], Device]] = {
    "standin": lambda: open_device("standin", FAST),
    "threads": fast_standin,
    "early": lambda: open_device("standin", FAST, early=True),
    "cuda": lambda: open_device("cuda", FAST),
}
EVERY_DEVICE = pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.gpu if one == "cuda" else ()) for one in OPEN]
)


def opened(name: str) -> Device:
    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU here")
    return OPEN[name]()


@EVERY_DEVICE
@pytest.mark.parametrize("check", DEVICE_CHECKS, ids=lambda check: check.__name__)
def test_a_device_keeps_its_promises(check: Check, name: str) -> None:
    device = opened(name)
    try:
        check(device)
    finally:
        device.close()


@EVERY_DEVICE
def test_no_reader_sees_a_slot_change(name: str) -> None:
    device = opened(name)
    result = reuse_slots(device, 200)
    device.close()
    assert result.wrong == 0
    assert result.reads > result.fills == 200


def test_the_control_without_waits_is_noticed() -> None:
    """By the happens-before checker always, by wrong bytes only when the timing is bad."""
    checker = HazardChecker()
    device = fast_standin(checker)
    reuse_slots(device, 60, pool_type=ForgetfulPool)
    device.close()
    assert len(checker.hazards) > 10


class Disordered(StandIn):
    """Waits for nothing."""

    def wait(self, stream: object, event: object) -> None:
        pass


class Lossy(StandIn):
    """Loses the last byte of each copy."""

    def copy(self, dst: torch.Tensor, src: torch.Tensor, *others: Any, **named: Any) -> Any:
        ends = (side.view(-1).view(torch.uint8)[:-1] for side in (dst, src))
        return super().copy(*ends, *others, **named)


@pytest.mark.parametrize("broken", [lambda: Disordered({"copy": Link(2e9)}), lambda: Lossy({})])
def test_a_device_that_breaks_its_promises_is_noticed(broken: Callable[[], Device]) -> None:
    failed = []
    for check in DEVICE_CHECKS:
        device = broken()
        try:
            check(device)
        except CheckFailed as error:
            failed.append(str(error))
        finally:
            device.close()
    assert failed


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "standin:0", ""])
def test_unknown_devices_are_refused(name: str) -> None:
    with pytest.raises(UserError, match="standin, cuda"):
        device_kind(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_without_a_gpu_the_refusal_says_what_was_found() -> None:
    with pytest.raises(UserError, match=f"torch {torch.__version__}".replace("+", r"\+")):
        open_device("cuda", FAST)
