"""The one state layout of all composed policies: arrays that every kernel may read and its own
part may write."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

# Entries of `clock`.
PASS = 0  # passes seen since reset; the first is 0
ROWS = 1  # rows of the current pass
LAYER = 2  # layer that runs now; -1 while drafting
PASS_NS = 3  # estimated time of a whole pass, from the last one
ACCUMULATED_NS = 4  # the same, of the pass under way
UP = 5  # promotion threshold in force
DOWN = 6  # demotion threshold in force
WANTED = 7  # copies wanted since the last calibration
RETURNS = 8  # experts wanted again soon after their eviction, since the last calibration
CALIBRATED = 9  # pass of the last calibration
TOP_K = 10  # experts per token
SLOTS = 11  # slots in all
GAMMA = 12  # draft length of the current pass
TOKENS = 13  # tokens of the current pass known so far: the last committed one and the drafted
REQUESTS = 14  # requests begun since reset
LEAVING = 15  # 1 while the decision at a layer's end is made
BEFORE = 16  # token of the last committed row of the pass before; -1: unknown
REQUEST_PASSES = 17  # passes begun in this request
CLOCK_SIZE = 20

# Entries of `measured`: running means.
ACTIVE = 0  # active experts of a layer
MISSES = 1  # those of them without a slot
PREDICTED_MISSES = 2  # experts predicted for the next layer and without a slot
# Of policies.windows.expected_gain, in ns: the experts of the pass under way, and decayed sums.
EXPERT_NS = 3
FIRST_NS = 4  # mean of row 0 alone
TAKEN_NS = 5  # experts of whole passes as planned
PLANNED_NS = 6  # the same as the sum of what the rows add
SPREAD = 7  # of policies.estimators.reuse: active experts of a layer over those of a row
MEASURED_SIZE = 8

# Rows of `window`, by draft length or by position of a drafted token.
TRIED = 0  # decayed number of verifications of the drafted token at this position (from 1)
ACCEPTED = 1  # the same, of its acceptances
ROW_NS = 2  # what this row added to the pass under way
ROW_SUM = 3  # decayed sum of it
ROW_SHARE = 4  # decayed sum of what row 0 of the same passes took
WINDOW_SIZE = 66

SIGNAL = 0
ESTIMATOR = 1
BALANCER = 2
MOVER = 3
WINDOW = 4
QUOTA = 5
PARTS = 6
PARAMETERS = 12


class Program(NamedTuple):
    """Which kernel plays each part: integer kinds, so that the compiled code is cached once for
    all policies."""

    signal: int
    estimator: int
    balancer: int
    mover: int
    window: int
    quota: int


class Sizes(NamedTuple):
    """Sizes of what only some parts keep; 0 where the policy has no such part."""

    requests: int = 0  # activation matrices of past requests
    curves: int = 0  # 1: LRU stack depths
    queue_levels: int = 0  # levels of the released code's prefetch queue
    buckets: int = 0  # rows of the table of tokens
    ways: int = 0  # experts remembered per token and layer
    features: int = 0  # what expected uses are learned from, per expert
    passes: int = 0  # past passes that the present one is compared with
    nearest: int = 0  # those of them that are listened to


class State(NamedTuple):
    """utility, memory float64 [layers, experts]; stamp int64 [layers, experts]: pass of the last
    activation (-1: never); evicted int64 [layers, experts]: pass of the last eviction (-1: never);
    tau, quota int64 [layers] (quota -1: one global pool); clock int64 [CLOCK_SIZE]; measured
    float64 [MEASURED_SIZE]; window float64 [5, WINDOW_SIZE]; parameters float64 [PARTS,
    PARAMETERS]; levels int64 [4, 66]: scratch of the balancer. flat_utility: a view of utility
    by flat key. utility_version int64 [layers]: bumped by whoever changes
    utilities of a layer, for what is computed from them once and kept.

    Empty unless a part keeps them: library float32 [requests, layers, experts]: activations of past
    requests; curve int64 [layers, experts + 1]: activations by LRU stack depth; queue int64
    [levels + 1, 2 + 2 * layers * experts]: head, length, ring; tokens int64 [WINDOW_SIZE]: tokens
    of this pass; token_expert int16, token_share float32 [buckets, layers, ways]: what each token
    activated, next_expert, next_share: what the row after it did; counts_to_come uint8 [passes,
    layers, experts] and next_use int32 of the same shape, of a clairvoyant. Of
    policies.estimators.reuse: features float64 [layers, experts, features], after and weights
    float64 [features], sums and equations float64 [features, features + 1], request_uses float64
    [layers, experts], follow float32 [layers, experts, experts], followed and all_uses float32
    [layers, experts], expected float64 [3, experts]; a ring of past passes: past_mask uint64
    [layers, passes, words], a bit per expert used, past_expert int16 [layers, passes, experts] and
    past_size int16 [layers, passes], the same as lists, likeness float64 [passes] to the pass under
    way, nearest int64 [nearest].
    """

    utility: npt.NDArray[np.float64]
    memory: npt.NDArray[np.float64]
    stamp: npt.NDArray[np.int64]
    evicted: npt.NDArray[np.int64]
    tau: npt.NDArray[np.int64]
    quota: npt.NDArray[np.int64]
    clock: npt.NDArray[np.int64]
    measured: npt.NDArray[np.float64]
    window: npt.NDArray[np.float64]
    parameters: npt.NDArray[np.float64]
    levels: npt.NDArray[np.int64]
    library: npt.NDArray[np.float32]
    curve: npt.NDArray[np.int64]
    queue: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int64]
    token_expert: npt.NDArray[np.int16]
    token_share: npt.NDArray[np.float32]
    next_expert: npt.NDArray[np.int16]
    next_share: npt.NDArray[np.float32]
    features: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]
    sums: npt.NDArray[np.float64]
    equations: npt.NDArray[np.float64]
    request_uses: npt.NDArray[np.float64]
    follow: npt.NDArray[np.float32]
    followed: npt.NDArray[np.float32]
    all_uses: npt.NDArray[np.float32]
    expected: npt.NDArray[np.float64]
    past_mask: npt.NDArray[np.uint64]
    past_expert: npt.NDArray[np.int16]
    past_size: npt.NDArray[np.int16]
    likeness: npt.NDArray[np.float64]
    nearest: npt.NDArray[np.int64]
    after: npt.NDArray[np.float64]
    counts_to_come: npt.NDArray[np.uint8]
    next_use: npt.NDArray[np.int32]
    flat_utility: npt.NDArray[np.float64]
    utility_version: npt.NDArray[np.int64]


def new_state(layers: int, experts: int, sizes: Sizes | None = None) -> State:
    """Fresh state: utility 0, nothing seen, no future."""
    sizes = sizes or Sizes()
    levels = sizes.queue_levels + 1 if sizes.queue_levels else 0
    learning = layers if sizes.features else 0
    utility = np.zeros((layers, experts))
    stamp = np.full((layers, experts), -1, np.int64)
    return State(
        utility=utility,
        memory=np.zeros((layers, experts)),
        stamp=stamp,
        evicted=np.full((layers, experts), -1, np.int64),
        tau=np.ones(layers, np.int64),
        quota=np.full(layers, -1, np.int64),
        clock=np.zeros(CLOCK_SIZE, np.int64),
        measured=np.zeros(MEASURED_SIZE),
        window=np.zeros((5, WINDOW_SIZE)),
        parameters=np.zeros((PARTS, PARAMETERS)),
        levels=np.zeros((4, 66), np.int64),
        library=np.zeros((sizes.requests, layers, experts), np.float32),
        curve=np.zeros((layers * sizes.curves, experts + 1), np.int64),
        queue=np.zeros((levels, 2 + 2 * layers * experts), np.int64),
        tokens=np.full(WINDOW_SIZE, -1, np.int64),
        token_expert=np.full((sizes.buckets, layers, sizes.ways), -1, np.int16),
        token_share=np.zeros((sizes.buckets, layers, sizes.ways), np.float32),
        next_expert=np.full((sizes.buckets, layers, sizes.ways), -1, np.int16),
        next_share=np.zeros((sizes.buckets, layers, sizes.ways), np.float32),
        features=np.zeros((learning, experts, sizes.features)),
        weights=np.zeros(sizes.features),
        sums=np.zeros((sizes.features, sizes.features + 1)),
        equations=np.zeros((sizes.features, sizes.features + 1)),
        request_uses=np.zeros((learning, experts)),
        follow=np.zeros((learning, experts, experts), np.float32),
        followed=np.zeros((learning, experts), np.float32),
        all_uses=np.zeros((learning, experts), np.float32),
        expected=np.zeros((3, experts)),
        past_mask=np.zeros((learning, sizes.passes, (experts + 63) // 64), np.uint64),
        past_expert=np.zeros((learning, sizes.passes, experts), np.int16),
        past_size=np.zeros((learning, sizes.passes), np.int16),
        likeness=np.zeros(sizes.passes),
        nearest=np.zeros(sizes.nearest, np.int64),
        after=np.zeros(sizes.features),
        counts_to_come=np.zeros((0, layers, experts), np.uint8),
        next_use=np.zeros((0, layers, experts), np.int32),
        flat_utility=utility.reshape(-1),
        utility_version=np.zeros(layers, np.int64),
    )
