"""Numbers of `study theory` that pictures and findings share: means over layers and workloads."""

import pandas as pd


def by_workload(information: pd.DataFrame) -> pd.DataFrame:
    """Means over layers, a row per workload."""
    return information.groupby("workload", sort=False).mean()


def gain(table: pd.DataFrame, more: str, less: str) -> float:
    """Mean over workloads of the ratio of two columns."""
    return float((table[more] / table[less]).mean())


def relative_speed(rows: pd.DataFrame) -> pd.DataFrame:
    """Per estimator, signal and error rate: TPS over all_cpu's, hit rate; means over workloads."""
    floor = rows[rows["signal"] == "none"].set_index("workload")["tokens_per_second"]
    played = rows[rows["signal"] != "none"]
    relative = played["tokens_per_second"] / played["workload"].map(floor)
    keys = ["estimator", "signal", "error_rate"]
    grouped = played.assign(relative=relative).groupby(keys, sort=False)
    return grouped[["relative", "hit_rate_per_token", "prefetches"]].mean().reset_index()


def line_of(speeds: pd.DataFrame, estimator: str, signal: str) -> pd.DataFrame:
    """One line of the picture, by error rate."""
    chosen = (speeds["estimator"] == estimator) & (speeds["signal"] == signal)
    return speeds[chosen].sort_values("error_rate")


def middle_rate(speeds: pd.DataFrame) -> float:
    """The error rate that titles and sentences speak of."""
    rates = sorted(speeds["error_rate"].unique())
    return float(rates[len(rates) // 2])


def kept(speeds: pd.DataFrame, estimator: str, signal: str, rate: float) -> float:
    """Share of the gain over all_cpu without errors that is left at an error rate."""
    line = line_of(speeds, estimator, signal).set_index("error_rate")["relative"]
    return float((line.loc[rate] - 1) / (line.iloc[0] - 1))
