"""Which layer of which pass each copy was for: the link between a copy and the work it serves."""

import pandas as pd

from traces.prefetch_outcomes import first_uses
from traces.run_info import RunLog
from traces.runlog_schema import COPY_PREFETCH


def uses_of_copies(runlog: RunLog) -> pd.DataFrame:
    """`pass_index` and `layer` of each copy's use, indexed like `runlog.copies`; -1 where none.

    A fetched or streamed expert is used by the layer that asked for it, a prefetched one by the
    first layer at which it is active while it holds its slot.
    """
    uses = runlog.copies[["pass_index", "layer"]].astype("int64")
    prefetches = runlog.copies[runlog.copies["kind"] == COPY_PREFETCH]
    if len(prefetches):
        found = first_uses(runlog, prefetches)
        uses.loc[prefetches.index, ["pass_index", "layer"]] = found[["pass_index", "layer"]]
    return uses
