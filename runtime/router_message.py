"""The one message from device to host per layer: what the router chose, for which rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from runtime.device import COMPUTE, ROUTER, Device
from runtime.message_ring import HostRing, Message, send_to_host

RING = 4
CAPACITY = 64 * 1024
PAYLOAD = "router payload"  # of all messages: each is read before the next one is packed


@dataclass(frozen=True)
class RouterMessage:
    """experts int32 [rows, k]; weights float32 [rows, k]; predicted int32 [h, rows, k] or None;
    hidden [rows, H] in the compute dtype, in host memory, valid until the ring comes round.
    """

    experts: np.ndarray
    weights: np.ndarray
    predicted: np.ndarray | None
    hidden: torch.Tensor


class Posted:
    """A router message on its way. `routed`: event after which the router had chosen."""

    def __init__(
        self,
        message: Message,
        packed: torch.Tensor,
        parts: list[torch.Tensor],
        predicts: bool,
        routed: Any,
    ) -> None:
        self.routed = routed
        self._packed = packed  # freed before it was copied, its memory would be given to others
        self._message, self._parts, self._predicts = message, parts, predicts

    def wait(self) -> RouterMessage:
        """The message, once it has arrived."""
        parts = self._parts
        sizes = [part.numel() * part.element_size() for part in parts]
        pieces = [
            piece.view(part.dtype).view(part.shape)
            for piece, part in zip(self._message.wait().split(sizes), parts, strict=True)
        ]
        return RouterMessage(
            experts=pieces[0].numpy().copy(),
            weights=pieces[1].numpy().copy(),
            predicted=pieces[2].numpy().copy() if self._predicts else None,
            hidden=pieces[-1],
        )


class RouterChannel:
    """Sends and receives router messages on a stream of its own."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._stream = device.stream(ROUTER)
        self._ring = HostRing(device, RING, CAPACITY, "router message")

    def post(
        self,
        experts: torch.Tensor,
        weights: torch.Tensor,
        predicted: torch.Tensor | None,
        hidden: torch.Tensor,
    ) -> Posted:
        """Pack and send. Shapes as in RouterMessage; all on the device."""
        device = self._device
        parts = [experts.to(torch.int32), weights.float(), hidden]
        if predicted is not None:
            parts.insert(2, predicted.to(torch.int32))
        packed = torch.cat([part.contiguous().view(-1).view(torch.uint8) for part in parts])
        compute = device.stream(COMPUTE)
        device.note(compute, writes=(PAYLOAD,))
        routed = device.event()
        device.record(routed, compute)
        device.wait(self._stream, routed)
        message = send_to_host(device, self._ring, packed, self._stream, reads=(PAYLOAD,))
        return Posted(message, packed, parts, predicted is not None, routed)
