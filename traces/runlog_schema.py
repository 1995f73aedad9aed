"""Tables of a run log. One schema for simulated and measured runs, so that every figure compares.

Times are integer nanoseconds on one clock per run. Expert lists are in ascending order; plan lists
are in plan order and hold flat keys layer * experts + expert. A lane without work has begin = end.
`gpu_busy_ns`, `cpu_busy_ns`: time the lane computes experts, without waits inside; where an engine
cannot tell it is end - begin. `hit`: 1 if the expert was READY when the routing became known.
What a decision saw: `view_digest` of the pool, `landed` = copies into slots published since the run
began, `credits` = prefetches allowed. `leave_*` columns are the decision after the layer's join.
"""

import pyarrow as pa

GPU, CPU, FETCH, STREAM = 1, 2, 3, 4  # placement of an active expert
COPY_DEMAND, COPY_STREAM, COPY_PREFETCH = 0, 1, 2  # kind of a copy
PREFILL_PHASE, DECODE_PHASE = 0, 1
NO_LAYER = -1  # layer of a copy issued while drafting
NO_SLOT = -1  # slot of a streamed copy where the engine does not number its staging buffers

_KEYS = pa.list_(pa.int32())

PASSES = pa.schema(
    [
        ("request", pa.int32()),
        ("pass_index", pa.int32()),
        ("phase", pa.uint8()),
        ("start_position", pa.int32()),
        ("gamma", pa.int32()),
        ("rows", pa.int32()),
        ("accepted", pa.int32()),
        ("committed", pa.int32()),
        ("begin_ns", pa.int64()),
        ("draft_end_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("warmup", pa.bool_()),
    ]
)

LAYERS = pa.schema(
    [
        ("pass_index", pa.int32()),
        ("layer", pa.int32()),
        ("t0_ns", pa.int64()),
        ("t1_ns", pa.int64()),
        ("t2_ns", pa.int64()),
        ("gpu_begin_ns", pa.int64()),
        ("gpu_end_ns", pa.int64()),
        ("gpu_busy_ns", pa.int64()),
        ("cpu_begin_ns", pa.int64()),
        ("cpu_end_ns", pa.int64()),
        ("cpu_busy_ns", pa.int64()),
        ("join_ns", pa.int64()),
        ("decision_ns", pa.int64()),
        ("leave_decision_ns", pa.int64()),
        ("view_digest", pa.uint64()),
        ("landed", pa.int64()),
        ("credits", pa.int32()),
        ("leave_view_digest", pa.uint64()),
        ("leave_landed", pa.int64()),
        ("leave_credits", pa.int32()),
        ("experts", pa.list_(pa.uint16())),
        ("counts", pa.list_(pa.uint16())),
        ("placement", pa.list_(pa.uint8())),
        ("hit", pa.list_(pa.uint8())),
        ("demand_expert", _KEYS),
        ("demand_slot", _KEYS),
        ("prefetch_expert", _KEYS),
        ("prefetch_slot", _KEYS),
        ("leave_prefetch_expert", _KEYS),
        ("leave_prefetch_slot", _KEYS),
    ]
)

DRAFTS = pa.schema(
    [
        ("pass_index", pa.int32()),
        ("step", pa.int32()),
        ("token", pa.int32()),
        ("t_ns", pa.int64()),
        ("decision_ns", pa.int64()),
        ("view_digest", pa.uint64()),
        ("landed", pa.int64()),
        ("credits", pa.int32()),
        ("prefetch_expert", _KEYS),
        ("prefetch_slot", _KEYS),
    ]
)

COPIES = pa.schema(
    [
        ("copy_id", pa.int32()),
        ("expert", pa.int32()),
        ("slot", pa.int32()),
        ("generation", pa.int32()),
        ("kind", pa.uint8()),
        ("pass_index", pa.int32()),
        ("layer", pa.int32()),
        ("bytes", pa.int64()),
        ("issue_ns", pa.int64()),
        ("begin_ns", pa.int64()),
        ("landing_ns", pa.int64()),
    ]
)

TABLES = {"passes": PASSES, "layers": LAYERS, "drafts": DRAFTS, "copies": COPIES}
