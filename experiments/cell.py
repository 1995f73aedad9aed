"""A cell is what policies compete in: one workload at one cache ratio and gamma on one machine."""

CELL = ["hardware", "model", "workload", "cache_ratio", "gamma"]
TPS = "tokens_per_second"
HITS_BY_LAYER = "hits_by_layer"  # an array in each row: in Parquet, not in CSV
