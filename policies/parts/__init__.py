"""The parts of which most published systems are made, as frozen records of their parameters.

signal -> estimator (utility per expert) x balancer (who computes what in a layer) x mover (what to
copy in, what to drop), plus window (gamma per pass) and quota (slots per layer). Ablations change
one field.
"""

from policies.parts.balancers import (
    AllCpu,
    Assignment,
    ByResidency,
    Cheaper,
    FetchMisses,
    Greedy,
    GreedyGain,
    Priced,
    Split,
    StreamMisses,
    Threshold,
)
from policies.parts.estimators import (
    Average,
    Decayed,
    Fixed,
    FrequencyRecency,
    Inertia,
    Last,
    NextUse,
    NoEstimator,
    Recency,
    RequestMatrix,
    Reuse,
    StaticProfile,
    Upcoming,
    UsesToCome,
    Workload,
)
from policies.parts.movers import (
    AdmitMisses,
    CodeQueue,
    HighestUtility,
    NextLayer,
    SavedTime,
    Still,
    Unified,
)
from policies.parts.part import SIGNALS, Part, describe
from policies.parts.quotas import QUOTAS, MissCurves, PerLayer, Pool, Shallow, WholeLayers
from policies.parts.windows import ExpectedGain, FixedWindow, Roofline

__all__ = [
    "QUOTAS",
    "SIGNALS",
    "AdmitMisses",
    "AllCpu",
    "Assignment",
    "Average",
    "ByResidency",
    "Cheaper",
    "CodeQueue",
    "Decayed",
    "ExpectedGain",
    "FetchMisses",
    "Fixed",
    "FixedWindow",
    "FrequencyRecency",
    "Greedy",
    "GreedyGain",
    "HighestUtility",
    "Inertia",
    "Last",
    "MissCurves",
    "NextLayer",
    "NextUse",
    "NoEstimator",
    "Part",
    "PerLayer",
    "Pool",
    "Priced",
    "Recency",
    "RequestMatrix",
    "Reuse",
    "Roofline",
    "SavedTime",
    "Shallow",
    "Split",
    "StaticProfile",
    "Still",
    "StreamMisses",
    "Threshold",
    "Unified",
    "Upcoming",
    "UsesToCome",
    "WholeLayers",
    "Workload",
    "describe",
]
