"""MappedReplay: the passes of a trace, with its routing carried over to a model of another shape.

Layer l of the model is layer l mod L of the trace. An expert of the trace stands for experts /
trace experts experts of the model; a row chooses first copies before second ones, so that reuse,
popularity and the distance between two uses stay as recorded. Prompts are left out: forced routing
has no use for them.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from policies.errors import UserError
from traces.manifest import ModelInfo
from traces.replay import Replay
from traces.request_arrays import RequestArrays
from traces.rows import FILLER
from traces.window import Window

Indices = NDArray[np.uint16]


class MappedReplay:
    """See traces.replay.Replay. `requests`: play only the first so many."""

    def __init__(self, replay: Replay, model: ModelInfo, requests: int | None = None) -> None:
        check_mapping(replay.model, model)
        self._replay = replay
        self.model = model
        self.kind, self.columns = replay.kind, replay.columns
        self.gamma_limit, self.fixed_gamma = replay.gamma_limit, replay.fixed_gamma
        self.approximate = replay.approximate
        self.request_ids = replay.request_ids[:requests]
        self._copies = model.experts // replay.model.experts
        self._layers = np.arange(model.layers) % replay.model.layers

    def prompt(self, request: int) -> NDArray[np.int32]:
        """No prompt."""
        return np.zeros(0, np.int32)

    def prompt_length(self, request: int) -> int:
        """No prompt."""
        return 0

    def prefill(self, request: int) -> None:
        """No prefill."""

    def first(self, request: int) -> int:
        """See Replay."""
        return self._replay.first(request)

    def end(self, request: int) -> int:
        """See Replay."""
        return self._replay.end(request)

    def window(self, request: int, start: int, gamma: int) -> Window:
        """See Replay."""
        window = self._replay.window(request, start, gamma)
        return replace(
            window,
            experts=self._experts(window.experts),
            weights=self._weights(window.weights),
            next_layer=self._predicted(window.next_layer),
        )

    def arrays(self, request: int) -> RequestArrays:
        """See Replay."""
        arrays = self._replay.arrays(request)
        return arrays._replace(
            experts=self._experts(arrays.experts),
            weights=self._weights(arrays.weights),
            next_layer=self._predicted(arrays.next_layer),
            prefill=None,
        )

    def _experts(self, experts: Indices) -> Indices:
        """uint16 [..., trace layers, trace k] -> [..., layers, k]."""
        chosen = experts[..., self._layers, :].astype(np.int64) * self._copies
        copies = [chosen + copy for copy in range(self._copies)]
        return np.concatenate(copies, axis=-1)[..., : self.model.top_k].astype(np.uint16)

    def _weights(self, weights: NDArray[np.float16] | None) -> NDArray[np.float16] | None:
        if weights is None:
            return None
        spread = np.tile(weights[..., self._layers, :], self._copies)[..., : self.model.top_k]
        return (spread / np.float16(self._copies)).astype(np.float16)

    def _predicted(self, predicted: Indices | None) -> Indices | None:
        if predicted is None:
            return None
        mapped = self._experts(predicted)
        mapped[self._experts_missing(predicted)] = FILLER
        return mapped

    def _experts_missing(self, predicted: Indices) -> NDArray[np.bool_]:
        missing = np.tile(predicted[..., self._layers, :] == FILLER, self._copies)
        return missing[..., : self.model.top_k]


def check_mapping(trace: ModelInfo, model: ModelInfo) -> None:
    """UserError in one line if the routing of `trace` cannot stand for `model`."""
    copies, rest = divmod(model.experts, trace.experts)
    if rest or copies < 1:
        raise UserError(
            f"model {model.name} has {model.experts} experts a layer, no multiple of the trace's "
            f"{trace.experts}; choose another model, or a trace recorded from one like it"
        )
    if model.top_k > copies * trace.top_k:
        raise UserError(
            f"model {model.name} routes to {model.top_k} of {model.experts} experts, the trace's "
            f"{trace.top_k} of {trace.experts} stand for {copies * trace.top_k} at most; choose "
            "another model or trace"
        )


def mapping_note(trace: ModelInfo, model: ModelInfo) -> str:
    """How the routing was carried over, for output and logs."""
    if (trace.layers, trace.experts, trace.top_k) == (model.layers, model.experts, model.top_k):
        return "routing as recorded"
    return (
        f"routing of {trace.layers} layers x {trace.experts} experts (top-{trace.top_k}) carried "
        f"over to {model.layers} x {model.experts} (top-{model.top_k})"
    )
