"""The one message from device to host per layer: what the router chose, for which rows."""

from dataclasses import dataclass

import numpy as np
import torch

from runtime.device import COMPUTE, ROUTER, Device
from runtime.message_ring import HostRing, send_to_host

RING = 4
CAPACITY = 64 * 1024


@dataclass(frozen=True)
class RouterMessage:
    """experts int32 [rows, k]; weights float32 [rows, k]; predicted int32 [h, rows, k] or None;
    hidden [rows, H] in the compute dtype, in host memory, valid until the ring comes round.
    """

    experts: np.ndarray
    weights: np.ndarray
    predicted: np.ndarray | None
    hidden: torch.Tensor


class RouterChannel:
    """Sends and receives router messages on a stream of its own."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._stream = device.stream(ROUTER)
        self._ring = HostRing(device, RING, CAPACITY, "router message")

    def exchange(
        self,
        experts: torch.Tensor,
        weights: torch.Tensor,
        predicted: torch.Tensor | None,
        hidden: torch.Tensor,
    ) -> RouterMessage:
        """Pack, send, wait. Shapes as in RouterMessage; all on the device."""
        device = self._device
        parts = [experts.to(torch.int32), weights.float(), hidden]
        if predicted is not None:
            parts.insert(2, predicted.to(torch.int32))
        sizes = [part.numel() * part.element_size() for part in parts]
        packed = torch.cat([part.contiguous().view(-1).view(torch.uint8) for part in parts])
        computed = device.event()
        device.record(computed, device.stream(COMPUTE))
        device.wait(self._stream, computed)
        received = send_to_host(device, self._ring, packed, self._stream).wait()
        pieces = [
            piece.view(part.dtype).view(part.shape)
            for piece, part in zip(received.split(sizes), parts, strict=True)
        ]
        return RouterMessage(
            experts=pieces[0].numpy().copy(),
            weights=pieces[1].numpy().copy(),
            predicted=None if predicted is None else pieces[2].numpy().copy(),
            hidden=pieces[-1],
        )
