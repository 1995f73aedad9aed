"""Opens a device by its name: the one place that knows which there are."""

from policies.errors import UserError
from runtime.device import Device
from runtime.hazards import HazardChecker
from runtime.standin import standin
from runtime.standin_link import Link

STANDIN, CUDA = "standin", "cuda"
DEVICES = (STANDIN, CUDA)


def device_kind(name: str) -> tuple[str, int]:
    """Kind and number of `standin`, `cuda` or `cuda:<number>`; UserError for anything else."""
    kind, colon, index = name.partition(":")
    if kind not in DEVICES or (colon and (kind == STANDIN or not index.isdigit())):
        raise UserError(f"device={name} is unknown; use {STANDIN}, {CUDA} or {CUDA}:<number>")
    return kind, int(index or 0)


def open_device(
    name: str, link: Link, checker: HazardChecker | None = None, early: bool = False
) -> Device:
    """`link`, `checker`, `early`: for the stand-in, see there. UserError if it is not there."""
    kind, index = device_kind(name)
    if kind == STANDIN:
        return standin(link.bytes_per_second, link.latency_ns, checker, early)
    from runtime.cuda import Cuda

    return Cuda(index)
