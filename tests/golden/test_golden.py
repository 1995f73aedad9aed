"""Every policy gives exactly the hits, misses, bytes and time that it gave when last looked at."""

import json

import pytest

from policies.zoo import ZOO
from tests.golden.counts import GOLDEN, SLOTS, TRACES, counts

KEPT = json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("policy", sorted(ZOO))
def test_golden(trace, policy):
    kept = KEPT[trace][policy]
    assert sorted(map(int, kept)) == sorted(SLOTS)
    assert {slots: counts(trace, policy, int(slots)) for slots in kept} == kept


@pytest.mark.parametrize("trace", TRACES)
def test_the_kept_numbers_make_sense(trace):
    """At one window, accesses do not depend on the policy; all_cpu copies nothing."""
    kept = KEPT[trace]
    for slots in map(str, SLOTS):
        accesses = {
            sum(kept[name][slots][:2]) for name in ("spac", "lru_cpu", "lru_fetch", "belady")
        }
        assert len(accesses) == 1
        assert kept["all_cpu"][slots][0] == 0 and kept["all_cpu"][slots][2] == 0
        assert kept["belady"][slots][0] >= kept["lru_fetch"][slots][0]
