"""MoE-Infinity's activation matrices (arXiv 2401.14361): the request at hand is matched to past
requests, whose activations predict its own.

`memory` is the matrix of this request; `library` holds those of past ones. Matching happens once a
pass, over all layers, by cosine; the original matches at every layer.
"""

from __future__ import annotations

import numpy as np

from policies.compile import inner
from policies.signals.signal import signal_value
from policies.state import REQUESTS


@inner
def _any_positive(matrix):
    for layer in range(matrix.shape[0]):
        for expert in range(matrix.shape[1]):
            if matrix[layer, expert] > 0.0:
                return True
    return False


@inner
def keep_matrix(state):
    """A request ends: its matrix takes the oldest place of the library, and the next one begins
    empty."""
    library, matrix = state.library, state.memory
    kept = state.clock[REQUESTS] > 0 and _any_positive(matrix)
    place = (state.clock[REQUESTS] - 1) % library.shape[0]
    for layer in range(matrix.shape[0]):
        for expert in range(matrix.shape[1]):
            if kept:
                library[place, layer, expert] = matrix[layer, expert]
            matrix[layer, expert] = 0.0


@inner
def observe_matrix(program, state, observation, layer):
    """Add this pass to the matrix of the request."""
    matrix, active = state.memory, observation.active
    for place in range(observation.size[0]):
        expert = active[place]
        matrix[layer, expert] += signal_value(program.signal, observation, expert)


@inner
def _expected(library, matrix, best, at_hand, layer, expert):
    """Activations by the past request `best`; without one (-1) by this request if `at_hand`, else
    by all past ones."""
    if best >= 0:
        return float(library[best, layer, expert])
    if at_hand:
        return matrix[layer, expert]
    total = 0.0
    for request in range(library.shape[0]):
        total += library[request, layer, expert]
    return total


@inner
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
    at_hand = best < 0 and _any_positive(matrix)
    for layer in range(layers):
        total = 0.0
        for expert in range(experts):
            total += _expected(library, matrix, best, at_hand, layer, expert)
        if total > 0.0:
            state.utility_version[layer] += 1
            weight = (1.0 - layer / layers) / total
            for expert in range(experts):
                expected = _expected(library, matrix, best, at_hand, layer, expert)
                utilities[layer, expert] = expected * weight
