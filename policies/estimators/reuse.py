"""Expected uses of an expert in the passes to come, learned while running.

Experts that look alike are used alike: what can be seen of an expert (passes since its last use,
rows of that use, its decayed rate per row) selects a cell of one small table for all layers. Each
pass teaches the cell whether an expert in it was used, and what the cell that it moved to promises:

    value(before) <- value(before) + step * (used + discount * value(after) - value(before))

which is temporal-difference learning of the discounted number of uses. No time scale is fitted:
what recency and frequency are worth follows from the trace at hand. Drafted tokens correct the
value for the coming pass (policies.estimators.token_shares).
"""

from __future__ import annotations

from policies.compile import inner, kernel
from policies.state import ESTIMATOR, PASS

DECAY = 0
DISCOUNT = 4
LEAST_STEP = 5
AGES = 10
RATES = 10
VALUE = 0
VISITS = 1


@inner
def cell_of(age, count, rate):
    """Row and column of the table: `age` in passes since the last use (negative: never), its
    `count` of rows if that was in the latest pass, decayed `rate` per row."""
    if age < 0:
        row = AGES - 1
    elif age == 0:
        row = min(max(count, 1), 3) - 1
    elif age <= 3:
        row = age + 2
    elif age <= 5:
        row = 6
    elif age <= 9:
        row = 7
    elif age <= 17:
        row = 8
    else:
        row = 9
    column = 0
    edge = 0.004
    while column < RATES - 1 and rate > edge:
        edge *= 1.9
        column += 1
    return row, column


@kernel(allocates=False)
def start_reuse(state):
    """Before anything is seen, a cell is worth its rate over the discounted future."""
    discount = state.parameters[ESTIMATOR, DISCOUNT]
    edge = 0.004
    for column in range(RATES):
        state.reuse[VALUE, :, column] = 0.7 * edge / max(1.0 - discount, 0.01)
        edge *= 1.9


@inner
def observe_reuse(state, observation, layer):
    """Learn from this pass of `layer`, update its rates and set its utilities from the next pass
    on."""
    rates, utilities, counts = state.memory, state.utility, observation.counts
    stamps, table = state.stamp, state.reuse
    decay = state.parameters[ESTIMATOR, DECAY]
    discount = state.parameters[ESTIMATOR, DISCOUNT]
    least = state.parameters[ESTIMATOR, LEAST_STEP]
    now = state.clock[PASS]
    step = max(1.0 - decay, 1.0 / (now + 1.0))
    rows = float(observation.size[1])
    last = state.last_count
    for expert in range(rates.shape[1]):
        rate = rates[layer, expert]
        count = counts[expert]
        age = -1
        if stamps[layer, expert] >= 0:
            age = now - 1 - stamps[layer, expert]
        row, column = cell_of(age, last[layer, expert], rate)
        rate += step * (count / rows - rate)
        rates[layer, expert] = rate
        used = 0.0
        if count > 0:
            used = 1.0
            age = 0
            last[layer, expert] = count
        elif age >= 0:
            age += 1
        later_row, later_column = cell_of(age, last[layer, expert], rate)
        visits = table[VISITS, row, column] + 1.0
        table[VISITS, row, column] = visits
        promised = used + discount * table[VALUE, later_row, later_column]
        # A cell that leads back to itself learns of its own promise: with steps of 1 / visits it
        # would not forget its first value within a run.
        learned = max(1.0 / (1.0 + (1.0 - discount) * visits), least)
        table[VALUE, row, column] += learned * (promised - table[VALUE, row, column])
        utilities[layer, expert] = table[VALUE, later_row, later_column]


@inner
def value_now(state, layer, expert):
    """Value of an expert of a layer that has not run in this pass yet, without its tokens."""
    stamp = state.stamp[layer, expert]
    age = -1
    if stamp >= 0:
        age = state.clock[PASS] - 1 - stamp
    row, column = cell_of(age, state.last_count[layer, expert], state.memory[layer, expert])
    return state.reuse[VALUE, row, column]
