"""findings.md of `study theory`, in plain words, every number from the tables."""

import pandas as pd

from experiments.studies.markdown import markdown_table
from experiments.studies.theory_numbers import by_workload, gain, kept, line_of, relative_speed


def theory_findings(information: pd.DataFrame, errors: pd.DataFrame) -> str:
    """The whole file."""
    gamma, table = int(information["gamma"].iloc[0]), by_workload(information)
    speeds = relative_speed(errors)
    parts = [
        "# Do counts tell more than bits, and do they forgive more mistakes?",
        f"Verify windows of {gamma + 1} rows; {len(table)} workloads; written by "
        "`spac study theory`. Where a name begins with ~ the trace holds accepted text only: the "
        "experts of rejected drafts are replaced by those of the text, which helps every signal in "
        "section 3.",
        "## 1. Entropy",
        entropy_words(table, gamma),
        markdown_table(entropy_shown(table)),
        "## 2. What a pass says about the next one",
        information_words(table),
        markdown_table(information_shown(table)),
        "## 3. Speed under wrong predictions",
        error_words(speeds),
        markdown_table(error_shown(speeds)),
    ]
    return "\n\n".join(parts) + "\n"


def entropy_words(table: pd.DataFrame, gamma: int) -> str:
    """Section 1. That the count wins is arithmetic; by how much is measured."""
    null = gain(table, "entropy_count_null", "entropy_bit_null")
    return (
        f"A bit is a function of the count, so the count can never have less entropy. Measured it "
        f"has {gain(table, 'entropy_count', 'entropy_bit'):.2f} times as much "
        f"({table['entropy_count'].mean():.2f} against {table['entropy_bit'].mean():.2f} bits per "
        f"expert and pass). With the rows in random order, popularity alone gives {null:.2f} times "
        f"({table['entropy_count_null'].mean():.2f} against "
        f"{table['entropy_bit_null'].mean():.2f}). Of the {gamma + 2} values that a count "
        "can take it uses little: "
        f"{table['entropy_count_share'].mean():.0%} of the largest possible entropy, the bit "
        f"{table['entropy_bit_share'].mean():.0%}. Entropy says how varied a signal is, not "
        "whether it is useful: a noisier signal has more of it."
    )


def information_words(table: pd.DataFrame) -> str:
    """Section 2."""
    over_bit = gain(table, "next_bit_count", "next_bit_bit")
    over_row = gain(table, "next_bit_count", "next_bit_row")
    verdict = "the claim holds" if over_bit > 1.02 else "the claim does not hold"
    return (
        "Mutual information with the next pass of the same request, less what random pairings of "
        f"passes give. About whether the expert is needed at all the count tells {over_bit:.2f} "
        f"times as much as the window's bit, and {over_row:.2f} times as much as the bit of one "
        f"row, which is what decoding without speculation sees; about the next count "
        f"{gain(table, 'next_count_count', 'next_count_bit'):.2f} and "
        f"{gain(table, 'next_count_count', 'next_count_row'):.2f} times. So {verdict} for one pass "
        "looked at alone; most of it is in the window, less in the count. Text traces take part "
        "with windows that follow each other without overlap, as if every draft was accepted: with "
        "rejections the rows of a window would be those of the next."
    )


def error_words(speeds: pd.DataFrame) -> str:
    """Section 3: both estimators, at no error and at the highest rate."""
    sentences = [
        "Of each layer and pass, a share of the active experts is reported to the estimator as "
        "other, inactive experts of that layer, with all their rows. Estimator apart, everything "
        "is the same: threshold program, mover, slots, costs. `levels` is MoE-SpAc's estimator "
        "(up = 2 for counts, 1 for bits, which could never rise otherwise; no calibration), "
        "`decayed sum` adds the signal of each pass and forgets a fifth per pass."
    ]
    for estimator in ("levels", "decayed sum"):
        count, bit = line_of(speeds, estimator, "count"), line_of(speeds, estimator, "bit")
        lead = count["relative"].to_numpy() / bit["relative"].to_numpy() - 1
        sentences.append(
            f"With {estimator}, the lead of counts over bits is {lead[0]:+.1%} without errors and "
            f"{lead[-1]:+.1%} at an error rate of {count['error_rate'].iloc[-1]:g}. Share of their "
            f"gain over all-CPU that is left: {kept_words(speeds, estimator)}."
        )
    decayed = line_of(speeds, "decayed sum", "bit")["relative"].iloc[0]
    levels = line_of(speeds, "levels", "count")["relative"].iloc[0]
    sentences.append(
        "A level can rise no higher than its signal, so SpAc's levels cannot add bits up over "
        f"passes. A decayed sum of bits can, and reaches {decayed / levels:.1%} of the speed of "
        "the levels of counts: much of what the count gives in one pass, memory over passes gives "
        "as well."
    )
    return " ".join(sentences)


def kept_words(speeds: pd.DataFrame, estimator: str) -> str:
    """Counts against bits at every error rate."""
    rates = sorted(speeds["error_rate"].unique())[1:]
    return "; ".join(
        f"at {rate:g} counts {kept(speeds, estimator, 'count', rate):.0%}, "
        f"bits {kept(speeds, estimator, 'bit', rate):.0%}"
        for rate in rates
    )


def entropy_shown(table: pd.DataFrame) -> pd.DataFrame:
    """Columns for the reader."""
    return pd.DataFrame(
        {
            "workload": names(table),
            "passes": table["passes"].map("{:.0f}".format),
            "one row's bit": table["entropy_row"].map("{:.3f}".format),
            "bit": table["entropy_bit"].map("{:.3f}".format),
            "count": table["entropy_count"].map("{:.3f}".format),
            "bit, normalised": table["entropy_bit_share"].map("{:.3f}".format),
            "count, normalised": table["entropy_count_share"].map("{:.3f}".format),
            "bit, shuffled": table["entropy_bit_null"].map("{:.3f}".format),
            "count, shuffled": table["entropy_count_null"].map("{:.3f}".format),
        }
    )


def information_shown(table: pd.DataFrame) -> pd.DataFrame:
    """Columns for the reader."""
    columns = {"workload": names(table)}
    for target in ("bit", "count"):
        for name in ("row", "bit", "count"):
            label = f"{'one row' if name == 'row' else name} -> next {target}"
            columns[label] = table[f"next_{target}_{name}"].map("{:.4f}".format)
    ratio = table["next_bit_count"] / table["next_bit_bit"]
    return pd.DataFrame({**columns, "count / bit": ratio.map("{:.2f}".format)})


def error_shown(speeds: pd.DataFrame) -> pd.DataFrame:
    """TPS over all_cpu by error rate."""
    wide = speeds.pivot_table(
        index=["estimator", "signal"], columns="error_rate", values="relative", sort=False
    )
    shown = wide.map("{:.3f}".format).reset_index()
    return shown.rename(columns={rate: f"error {rate:g}" for rate in wide.columns})


def names(table: pd.DataFrame) -> list[str]:
    """Workloads, text traces marked."""
    marked = zip(table.index, table["approximate"], strict=True)
    return [f"~{name}" if mark else str(name) for name, mark in marked]
