"""MoE-Infinity's activation matrices (arXiv 2401.14361): the request at hand is matched to past
requests, whose activations predict its own.

`memory` is the matrix of this request; `library` holds those of past ones. Matching happens once a
pass, over all layers, by cosine; the original matches at every layer.
"""

from __future__ import annotations

import numpy as np

from policies.compile import kernel
from policies.signals.signal import signal_value
from policies.state import REQUESTS


@kernel
def keep_matrix(state):
    """A request ends: its matrix takes the oldest place of the library, and the next one begins
    empty."""
    capacity = state.library.shape[0]
    if state.clock[REQUESTS] > 0 and state.memory.max() > 0.0:
        place = (state.clock[REQUESTS] - 1) % capacity
        state.library[place] = state.memory
    state.memory[:] = 0.0


@kernel
def observe_matrix(program, state, observation, layer):
    """Add this pass to the matrix of the request."""
    matrix, active = state.memory, observation.active
    for place in range(observation.size[0]):
        expert = active[place]
        matrix[layer, expert] += signal_value(program.signal, observation, expert)


@kernel
def match_matrix(state):
    """Utilities from the best match: its share of the layer's activations, weighted 1 - layer /
    layers (early layers are favoured). Without a past request, the matrix at hand; at the start of
    a request, the mean of the library."""
    matrix, library, utilities = state.memory, state.library, state.utility
    layers, experts = matrix.shape
    best = -1
    highest = 0.0
    for request in range(library.shape[0]):
        product = 0.0
        square = 0.0
        for layer in range(layers):
            for expert in range(experts):
                past = library[request, layer, expert]
                product += past * matrix[layer, expert]
                square += past * past
        if square > 0.0 and product / np.sqrt(square) > highest:
            highest = product / np.sqrt(square)
            best = request
    source = np.zeros((layers, experts))
    if best >= 0:
        source[:] = library[best]
    elif matrix.max() > 0.0:
        source[:] = matrix
    else:
        for request in range(library.shape[0]):
            source += library[request]
    for layer in range(layers):
        total = source[layer].sum()
        if total > 0.0:
            weight = (1.0 - layer / layers) / total
            for expert in range(experts):
                utilities[layer, expert] = source[layer, expert] * weight
