"""The integer by which each built-in part is dispatched in compiled code."""

# signals: what one pass says about an expert
COUNT = 0
BIT = 1
MASS = 2

# estimators: utility of an expert from its signals
NOTHING = 0
RECENCY = 1
DECAYED = 2
INERTIA = 3
STATIC = 4
NEXT_USE = 5
UPCOMING = 6
LAST = 7

# balancers: who computes what in this layer
ALL_CPU = 0
RESIDENT = 1
FETCH_MISSES = 2
THRESHOLD = 3

# movers: what to copy in ahead of time, what to drop for it
STILL = 0
ADMIT = 1
NEXT_LAYER = 2
UNIFIED = 3
STATIC_SET = 4
