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
FIXED = 8
FREQUENCY_RECENCY = 9
AVERAGE = 10
WORKLOAD = 11
REQUEST_MATRIX = 12
REUSE = 13
USES_TO_COME = 14

# balancers: who computes what in this layer
ALL_CPU = 0
RESIDENT = 1
FETCH_MISSES = 2
THRESHOLD = 3
STREAM_MISSES = 4
CHEAPER = 5
SPLIT = 6
ASSIGNMENT = 7
GREEDY = 8
BY_GAIN = 9
PRICED = 10

# movers: what to copy in ahead of time, what to drop for it
STILL = 0
ADMIT = 1
NEXT_LAYER = 2
UNIFIED = 3
STATIC_SET = 4
CODE_QUEUE = 5
SAVED_TIME = 6

# windows: tokens drafted in a pass
FIXED_WINDOW = 0
ROOFLINE = 1
EXPECTED_GAIN = 2

# quotas: slots of each layer
PER_LAYER = 0
POOL = 1
WHOLE_LAYERS = 2
SHALLOW = 3
MISS_CURVES = 4
