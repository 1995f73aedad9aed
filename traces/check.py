"""check_trace: verify a trace on disk and say what is in it."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from policies.errors import UserError
from traces.acceptance import leading_matches
from traces.atomic import TEMPORARY_PREFIX
from traces.layout import layout_problems, request_bounds
from traces.manifest import MANIFEST_NAME, Manifest, read_manifest
from traces.reader import Trace
from traces.rows import DECODE, UNKNOWN_TOKEN, RowBatch

# Two forwards of the same tokens in windows of different shape can differ in the last bits and flip
# a near-tie in the router. More than this share of rows is not near-ties but a broken recorder.
PREFIX_TOLERANCE = 0.02


@dataclass(frozen=True)
class CheckReport:
    """`problems`: what makes the trace unusable or doubtful, none if `ok`. `facts`: what was found.

    Prefix property of dense traces: while the drafts of start t match, row j must equal row 0 of
    start t + j. `prefix_compared` rows were compared, `prefix_differing` differ in experts
    (near-ties;
    a problem above 2 % of them).
    """

    problems: tuple[str, ...]
    facts: tuple[str, ...]
    requests: int
    rows: int
    prefix_compared: int = 0
    prefix_differing: int = 0

    @property
    def ok(self) -> bool:
        """No problem was found."""
        return not self.problems


def check_trace(path: str | Path) -> CheckReport:
    """Check hashes, ranges, duplicates, order, completeness, flags, text and prefix property.

    Raises UserError only if there is no readable manifest; damage to parts is reported as problems.
    """
    directory = Path(path)
    manifest = read_manifest(directory)
    trace, report = Trace(directory, manifest), CheckReport((), (), 0, 0)
    problems, facts = _directory_findings(directory, manifest)
    seen: set[int] = set()
    unreadable = 0
    for index, part in enumerate(manifest.parts):
        try:
            batch = trace.read_part(index)
        except UserError as error:
            problems.append(str(error))
            unreadable += 1
            continue
        numbers = {request for request, _, _ in request_bounds(batch.request)}
        found = [*_duplicates(batch), *layout_problems(batch, manifest)]
        if numbers & seen:
            found.append(f"request {min(numbers & seen)} is in an earlier part too")
        seen |= numbers
        compared, differing = 0, 0
        if not found and manifest.kind == "dense":
            found += _text_problems(batch, manifest)
            compared, differing = _prefix_differences(batch, manifest)
        problems += [f"{part.file}: {problem}" for problem in found]
        report = replace(
            report,
            requests=len(seen),
            rows=report.rows + len(batch),
            prefix_compared=report.prefix_compared + compared,
            prefix_differing=report.prefix_differing + differing,
        )
    if report.prefix_compared:
        share = report.prefix_differing / report.prefix_compared
        fact = (
            f"prefix property: {report.prefix_compared} rows compared, "
            f"{report.prefix_differing} differ ({share:.2%})"
        )
        (problems if share > PREFIX_TOLERANCE else facts).append(fact)
    parts = f"{len(manifest.parts)} parts"
    if unreadable:  # what is told of the others is not true of the trace
        parts = f"the {len(manifest.parts) - unreadable} parts that can be read, of {parts}"
    facts.insert(0, f"{report.requests} requests, {report.rows} rows in {parts}")
    return replace(report, problems=tuple(problems), facts=tuple(facts))


def _directory_findings(directory: Path, manifest: Manifest) -> tuple[list[str], list[str]]:
    """(problems, facts) from the manifest and the names in the directory."""
    problems: list[str] = []
    facts = [f"kind {manifest.kind}, gamma_max {manifest.gamma_max}, model {manifest.model.name}"]
    facts.append(
        "recorded completely" if manifest.complete else "incomplete: the recording was interrupted"
    )
    if manifest.complete and not manifest.parts:
        problems.append("the trace is complete and has no rows")
    known = {MANIFEST_NAME, *(part.file for part in manifest.parts)}
    for name in sorted(entry.name for entry in directory.iterdir()):
        if name.startswith(TEMPORARY_PREFIX):
            facts.append(f"left over from an interrupted write, ignored: {name}")
        elif name not in known:
            facts.append(f"not part of the trace, ignored: {name}")
    return problems, facts


def _duplicates(batch: RowBatch) -> list[str]:
    ordered = np.sort(batch.experts, axis=2)
    row, layer, _ = np.nonzero(ordered[:, :, 1:] == ordered[:, :, :-1])
    if len(row) == 0:
        return []
    at = row[0]
    place = f"request {batch.request[at]}, start {batch.start[at]}, row {batch.row[at]}"
    return [
        f"{len(row)} times an expert twice in a row and layer, first in {place}, layer {layer[0]}"
    ]


def _text_problems(batch: RowBatch, manifest: Manifest) -> list[str]:
    """Committed text: the input of row 0 of start t + 1 is y_{t,0}."""
    rows = batch.take(batch.phase == DECODE)
    request, start, token, choice = (
        column[:: manifest.rows_per_start]
        for column in (rows.request, rows.start, rows.input_token, rows.target_choice)
    )
    same = request[1:] == request[:-1]
    wrong = np.flatnonzero(same & (token[1:] != choice[:-1]))
    problems = []
    if len(wrong):
        at = wrong[0]
        problems.append(
            f"request {request[at]}: start {start[at]} commits token {choice[at]}, "
            f"start {start[at + 1]} has {token[at + 1]} ({len(wrong)} such places)"
        )
    if (choice == UNKNOWN_TOKEN).any():
        problems.append("a dense trace has a start without the token it commits (-1)")
    return problems


def _prefix_differences(batch: RowBatch, manifest: Manifest) -> tuple[int, int]:
    """(compared, differing) rows j >= 1 that repeat row 0 of start t + j of the same request."""
    window = manifest.rows_per_start
    rows = batch.take(batch.phase == DECODE)
    accepted = np.repeat(leading_matches(rows.match.reshape(-1, window)), window)
    own = np.flatnonzero((rows.row >= 1) & (rows.row <= accepted))
    # Row 0 of start t + j is `window` rows further on for each of the j starts.
    other = own - rows.row[own] + rows.row[own].astype(np.int64) * window
    inside = other < len(rows)
    own, other = own[inside], other[inside]
    same = rows.request[own] == rows.request[other]
    own, other = own[same], other[same]
    # As sets: an equal choice in another order is no difference.
    differ = np.sort(rows.experts[own], axis=2) != np.sort(rows.experts[other], axis=2)
    return len(own), int(differ.any(axis=(1, 2)).sum())
