"""The one message from device to host per layer: what the router chose, for which rows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from runtime.device import COMPUTE, ROUTER, Device
from runtime.message_ring import HostRing, Message, send_to_host

RING = 4
CAPACITY = 64 * 1024
Part = tuple[str, torch.Tensor]
PAYLOAD = "router payload"  # of all messages: each is read before the next one is packed


class RouterMessage(NamedTuple):
    """experts int32 [rows, k]; weights float32 [rows, k] or None; predicted int32 [h, rows, k] or
    None; hidden [rows, H] in the compute dtype, in host memory, valid until the ring comes round.
    """

    experts: np.ndarray
    weights: np.ndarray | None
    predicted: np.ndarray | None
    hidden: torch.Tensor


class Posted:
    """A router message on its way. `routed`: event after which the router had chosen."""

    def __init__(
        self, message: Message, packed: torch.Tensor, parts: Sequence[Part], routed: Any
    ) -> None:
        self.routed = routed
        self._packed = packed  # freed before it was copied, its memory would be given to others
        self._message, self._parts = message, parts

    def wait(self) -> RouterMessage:
        """The message, once it has arrived."""
        buffer = self._message.wait()
        pieces, begin = {}, 0
        for name, part in self._parts:
            end = begin + part.nbytes
            pieces[name] = buffer[begin:end].view(part.dtype).view(part.shape)
            begin = end
        weights, predicted = pieces.get("weights"), pieces.get("predicted")
        # Copies, since the buffer will be used again; converted here, where no launch pays for it.
        return RouterMessage(
            experts=pieces["experts"].numpy().astype(np.int32),
            weights=None if weights is None else np.array(weights.float().numpy()),
            predicted=None if predicted is None else predicted.numpy().astype(np.int32),
            hidden=pieces["hidden"],
        )


class RouterChannel:
    """Sends and receives router messages on a stream of its own."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._compute, self._stream = device.stream(COMPUTE), device.stream(ROUTER)
        self._ring = HostRing(device, RING, CAPACITY, "router message")

    def post(
        self,
        experts: torch.Tensor,
        weights: torch.Tensor | None,
        predicted: torch.Tensor | None,
        hidden: torch.Tensor,
    ) -> Posted:
        """Pack and send. Shapes as in RouterMessage; all on the device. weights, predicted: None
        where nobody on the host reads them.
        """
        device, compute = self._device, self._compute
        parts = [("experts", experts), ("hidden", hidden)]
        if weights is not None:
            parts.append(("weights", weights))
        if predicted is not None:
            parts.append(("predicted", predicted))
        parts.sort(key=_itemsize, reverse=True)  # wide numbers first: each is aligned
        packed = torch.cat([_as_bytes(part) for _, part in parts])
        device.note(compute, writes=(PAYLOAD,))
        routed = device.event()
        device.record(routed, compute)
        device.wait(self._stream, routed)
        message = send_to_host(device, self._ring, packed, self._stream, reads=(PAYLOAD,))
        return Posted(message, packed, parts, routed)


def _itemsize(part: Part) -> int:
    return part[1].itemsize


def _as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(-1).view(torch.uint8)
