"""Tables in findings.md."""

import pandas as pd


def markdown_table(table: pd.DataFrame) -> str:
    """A table of ready-made texts; the index is not shown."""
    header = [str(name) for name in table.columns]
    lines = [f"| {' | '.join(header)} |", "|" + " --- |" * len(header)]
    lines += [f"| {' | '.join(map(str, row))} |" for row in table.itertuples(index=False)]
    return "\n".join(lines)
