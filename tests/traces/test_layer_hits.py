"""Hits by layer, by hand: add_layer's hit is [1, 0] with counts [1, 2]."""

import numpy as np
import pytest
from runlog_samples import add_layer, add_pass, run_info

from traces.layer_hits import hit_rate_by_layer
from traces.metrics import metrics
from traces.runlog import RunLogBuilder


def test_each_layer_is_counted_by_tokens_of_decode_passes_outside_warm_up() -> None:
    builder = RunLogBuilder(run_info())
    add_layer(builder, 0, 0, 0, hit=[1, 1])
    add_pass(builder, 0, 0, 100, warmup=True)
    add_layer(builder, 1, 0, 100, hit=[1, 1])
    add_pass(builder, 1, 100, 200, request=1, phase=0)
    for number, hit in ((2, [1, 0]), (3, [1, 1])):
        add_layer(builder, number, 0, 100 * number, hit=hit)  # 1 + 3 of 6 tokens
        add_layer(builder, number, 1, 100 * number + 50, hit=[0, 1], counts=[1, 1])  # 2 of 4
        add_pass(builder, number, 100 * number, 100 * number + 100, request=1)
    log = builder.build()
    rates = hit_rate_by_layer(log)
    assert rates == pytest.approx([4 / 6, 2 / 4])
    assert np.average(rates, weights=[6, 4]) == pytest.approx(metrics(log).hit_rate_per_token)


def test_a_layer_that_was_never_played_has_no_rate() -> None:
    builder = RunLogBuilder(run_info())
    assert np.isnan(hit_rate_by_layer(builder.build())).all()
    add_layer(builder, 0, 1, 0)
    add_pass(builder, 0, 0, 100)
    rates = hit_rate_by_layer(builder.build())
    assert np.isnan(rates[0]) and rates[1] == pytest.approx(1 / 3)
