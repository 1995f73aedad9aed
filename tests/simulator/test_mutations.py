"""Change one rule of the compiled engine's physics, and it no longer equals the reference."""

from functools import cache

import pytest

from simulator.reference import simulate
from tests.simulator.equal_runs import assert_equal_outcomes
from tests.simulator.mutants import Mutation, load_engine
from tests.simulator.scenarios import outcome, scenario

SCENARIOS = 64
POLICIES = ("belady", "lru_fetch", "binary_prefetch", "spac", "lru_cpu", "fetch_predicted")
PAIRS = [(seed, name) for seed in range(SCENARIOS) for name in POLICIES]

BEGIN = "max(issue_ns, clock[LINK_FREE], buffer_ns)"
HOST = "max(t1_ns + to_host_ns, clock[HOST_FREE]) + costs.decision_layer_ns"
MUTATIONS = (
    Mutation("link: first in, first out", "link", BEGIN, "max(issue_ns, buffer_ns)"),
    Mutation("link: not before the issue", "link", BEGIN, "max(clock[LINK_FREE], buffer_ns)"),
    Mutation("staging buffer read first", "link", BEGIN, "max(issue_ns, clock[LINK_FREE])"),
    Mutation("copy latency", "pass", "costs.copy_latency_ns + costs.copy_ns", "costs.copy_ns"),
    Mutation(
        "copy latency in prefill", "prefill", "costs.copy_latency_ns + costs.copy_ns",
        "costs.copy_ns",
    ),
    Mutation("landed at the very ns", "link", "> snapshot_ns", ">= snapshot_ns"),
    Mutation(
        "snapshot at the previous join", "pass", "clock, queue, slot_copy, generations, t0_ns,",
        "clock, queue, slot_copy, generations, t1_ns,",
    ),
    Mutation(
        "streams take no slots", "link", "if kind != STREAMED:", "if True:"
    ),
    Mutation("routing to the host", "pass", "costs.d2h_ns + rules.layer_ns", "rules.layer_ns"),
    Mutation("price of needs", "pass", "costs.d2h_ns + rules.layer_ns", "costs.d2h_ns"),
    Mutation("routing to the host in prefill", "prefill", "t1_ns + costs.d2h_ns", "t1_ns"),
    Mutation("decision time of a layer", "pass", " + costs.decision_layer_ns", ""),
    Mutation("decision time after a layer", "pass", " + costs.decision_leave_ns", ""),
    Mutation("decision time while drafting", "pass", " + costs.decision_draft_ns", ""),
    Mutation(
        "one decision after another", "pass", HOST,
        "t1_ns + to_host_ns + costs.decision_layer_ns",
    ),
    Mutation("dispatch", "layer", "t2_ns + dispatch_ns", "t2_ns", times=2),
    Mutation("return", "layer", "max(join_ns, times[CPU_END] + return_ns)",
             "max(join_ns, times[CPU_END])"),
    Mutation("return, serial", "layer", "gpu_ns = times[CPU_END] + return_ns",
             "gpu_ns = times[CPU_END]"),
    Mutation("contention", "link", "left -= rate * busy_ns", "left -= FULL_RATE * busy_ns"),
    Mutation("full rate while idle", "link", "left -= FULL_RATE * idle_ns",
             "left -= rate * idle_ns"),
    Mutation("first ns, idle", "link", "return now_ns + (left + FULL_RATE - 1) // FULL_RATE",
             "return now_ns + left // FULL_RATE"),
    Mutation("first ns, busy", "link", "(left + rate - 1) // rate", "left // rate"),
    Mutation("GPU: landing order", "layer", "sort_by_number(places, numbers, flying)", "pass"),
    Mutation("GPU: waits for the copy", "layer", "gpu_ns = max(gpu_ns, landings[place])", "pass"),
    Mutation("GPU: residents first", "layer", "        gpu_ns += resident_ns\n", ""),
    Mutation("early: copies wait for the plan", "layer", "            gpu_ns = max(gpu_ns, t2_ns)",
             "            pass"),
    Mutation("early launch", "layer", "        gpu_ns = t1_ns\n", "        pass\n"),
    Mutation("late launch", "layer", "    gpu_ns = t2_ns\n", "    gpu_ns = t1_ns\n"),
    Mutation("serial lanes", "layer", "if serial and cpu_ns > 0:", "if False:"),
    Mutation("streams of one layer share buffers", "layer", " and streams == staging",
             " and False"),
    Mutation("copies are issued with the plan", "layer",
             "t2_ns, np.int64(0), duration_ns", "t2_ns + 1, np.int64(0), duration_ns"),
    Mutation("prefetches follow demand", "layer", "    if sure == demands:\n", "    if True:\n"),
    Mutation("prefetches at a layer's end are issued when decided", "pass",
             "layer, left_at_ns, duration_ns", "layer, now, duration_ns"),
    Mutation("prefetches while drafting are issued when decided", "pass",
             "(NO_LAYER), decided_ns, duration_ns", "(NO_LAYER), now, duration_ns"),
    Mutation("credits while drafting: time left", "pass", "(asked - 1 - step)",
             "(asked - step)"),
    Mutation("prefill: the cheaper way", "prefill", "streamed_ns < cpu_table[count]",
             "streamed_ns <= cpu_table[count]"),
    Mutation("prefill: output head", "prefill", "    now += costs.pass_ns\n", ""),
    Mutation("drafting takes time", "pass", "            now += step_ns\n", ""),
    Mutation("price of drafted tokens", "pass", "costs.draft_step_ns + rules.step_ns",
             "costs.draft_step_ns"),
    Mutation("output head", "pass", "        now += costs.pass_ns\n", ""),
    Mutation("router", "pass", "context_ns + costs.router_ns", "context_ns"),
    Mutation("attention over the context", "pass", "dense_table[rows] + context_ns",
             "dense_table[rows]"),
    Mutation("dense part by rows", "pass", "dense_table[rows] + context_ns",
             "dense_table[1] + context_ns"),
    Mutation("windows end with the request", "pass", "min(accepted + 1, commit_limit[start])",
             "accepted + 1"),
    Mutation("generations of streams", "layer", "generations[slots + buffer] += 1", "pass"),
    Mutation("cold start forgets copies", "run", "self.machine.clock[QUEUE_LENGTH] = 0", "pass"),
)  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory):
    """(seed, policy) -> (scenario, run log of the reference), each played once."""
    folder = tmp_path_factory.mktemp("scenarios")

    @cache
    def play(seed: int):
        return scenario(seed, folder)

    @cache
    def reference(seed: int, name: str):
        run = play(seed)
        return run, outcome(simulate, name, run, seed)

    return reference


def differs(engine, runs, pairs=PAIRS) -> bool:
    """True at the first run that `engine` plays otherwise than the reference."""
    for seed, name in pairs:
        run, expected = runs(seed, name)
        try:
            assert_equal_outcomes(expected, outcome(engine, name, run, seed))
        except (AssertionError, IndexError):  # an index: more copies than a plan can have
            return True
    return False


def test_the_engine_in_plain_python_equals_the_reference(runs, tmp_path) -> None:
    assert not differs(load_engine(tmp_path), runs, PAIRS[:96])


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.rule)
def test_a_changed_rule_is_found(mutation: Mutation, runs, tmp_path) -> None:
    assert differs(load_engine(tmp_path, mutation), runs), f"{mutation.rule}: nothing differs"
