"""A fixed set: the first experts of each layer, as many as its quota."""

from __future__ import annotations

from policies.compile import kernel


@kernel(allocates=False)
def start_fixed(state):
    """Utilities at reset; they never change."""
    for layer in range(state.utility.shape[0]):
        for expert in range(min(state.quota[layer], state.utility.shape[1])):
            state.utility[layer, expert] = 1.0
        state.utility_version[layer] += 1
