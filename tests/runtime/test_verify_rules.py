import numpy as np
import pytest
import torch

from policies.errors import UserError
from runtime.keyed_noise import keyed_noise
from runtime.verify_rules import UNDECIDED, KeyedRule, RejectionRule, make_rule
from traces.manifest import SamplingInfo

CPU = torch.device("cpu")


def logits(rows: int, seed: int = 0, vocabulary: int = 20) -> torch.Tensor:
    return torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(seed)) * 2


def keyed(temperature: float = 0.8, seed: int = 4) -> KeyedRule:
    rule = make_rule(SamplingInfo("keyed", temperature, seed), 20, CPU)
    assert isinstance(rule, KeyedRule)
    return rule


def test_keyed_choice_is_the_best_of_log_probability_plus_noise() -> None:
    rows = logits(6)
    tokens, margins = keyed().choose(rows, 3, 40)
    for row in range(6):
        scores = torch.log_softmax(rows[row] / 0.8, -1).numpy() + keyed_noise(4, 3, 40 + row, 20)
        first, second = np.sort(scores)[::-1][:2]
        assert tokens[row] == scores.argmax()
        assert margins[row] == pytest.approx(first - second, abs=1e-5)


def test_keyed_choice_does_not_depend_on_the_window() -> None:
    rows, rule = logits(9), keyed()
    together = rule.choose(rows, 0, 7)[0]
    apart = [keyed().choose(rows[row : row + 1], 0, 7 + row)[0][0] for row in range(9)]
    assert together == apart
    assert rule.propose(rows[4], 0, 11).token == together[4]
    assert rule.first(rows[0], 0, 7).token == together[0]


def test_keyed_verdict() -> None:
    rows = logits(4)
    choices = keyed().choose(rows, 0, 10)[0]
    wrong = (choices[2] + 1) % 20
    verdict = keyed().verify(rows, [choices[0], choices[1], wrong], 0, 10)
    assert (verdict.accepted, verdict.following) == (2, choices[2])
    assert list(verdict.choices) == choices
    full = keyed().verify(rows, choices[:3], 0, 10)
    assert (full.accepted, full.following) == (3, choices[3])


def test_greedy_ignores_temperature_and_seed() -> None:
    rows = logits(5)
    rules = [make_rule(SamplingInfo("greedy", t, s), 20, CPU) for t, s in ((0.0, 1), (0.7, 2))]
    for rule in rules:
        assert list(rule.verify(rows, [1, 2, 3, 4], 0, 0).choices) == rows.argmax(-1).tolist()


def test_rejection_sampling_keeps_the_distribution_of_every_committed_token() -> None:
    """Through the rule object: the q it judges by is the q it drew from."""
    p_rows, q_rows = logits(3, 1, 5), logits(2, 2, 5)
    p = torch.softmax(p_rows / 0.9, -1).numpy()
    rule, runs = RejectionRule(0.9, seed=6), 6000
    first, second, reached = np.zeros(5), np.zeros(5), 0
    for request in range(runs):
        drafts = [rule.propose(q_rows[step], request, 10 + step).token for step in range(2)]
        verdict = rule.verify(p_rows, drafts, request, 10)
        text = [*drafts[: verdict.accepted], verdict.following]
        first[text[0]] += 1
        if len(text) > 1:
            second[text[1]] += 1
            reached += 1
    assert np.all(np.abs(first / runs - p[0]) < 4.5 * np.sqrt(p[0] * (1 - p[0]) / runs))
    assert np.all(np.abs(second / reached - p[1]) < 4.5 * np.sqrt(p[1] * (1 - p[1]) / reached))


def test_rejection_verdict_leaves_later_rows_undecided() -> None:
    rule = RejectionRule(1.0, seed=6)
    rows = torch.full((4, 20), -30.0)
    rows[:, 7] = 30.0
    q = torch.full((20,), -30.0)
    q[3] = 30.0
    drafts = [rule.propose(q, 0, 5 + step).token for step in range(3)]
    assert drafts == [3, 3, 3]
    verdict = rule.verify(rows, drafts, 0, 5)
    assert (verdict.accepted, verdict.following) == (0, 7)
    assert verdict.choices == (7, UNDECIDED, UNDECIDED, UNDECIDED)


def test_a_failed_pass_leaves_no_proposals_behind() -> None:
    rows, q_rows = logits(3, 1, 5), logits(4, 2, 5)
    clean, dirty = RejectionRule(0.9, seed=6), RejectionRule(0.9, seed=6)
    for step in range(2):
        dirty.propose(q_rows[2 + step], 1, 30 + step)
    outcomes = []
    for rule in (clean, dirty):
        drafts = [rule.propose(q_rows[step], 1, 10 + step).token for step in range(2)]
        outcomes.append(rule.verify(rows, drafts, 1, 10))
    assert outcomes[0] == outcomes[1]


def test_first_token_of_rejection_sampling() -> None:
    row = logits(1, 3, 5)[0]
    p = torch.softmax(row / 0.9, -1).numpy()
    rule = RejectionRule(0.9, 2)
    counts = np.bincount([rule.first(row, r, 4).token for r in range(4000)], minlength=5)
    assert np.all(np.abs(counts / 4000 - p) < 4.5 * np.sqrt(p * (1 - p) / 4000))


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan"), float("inf")])
def test_impossible_temperatures(temperature: float) -> None:
    with pytest.raises(UserError, match=r"temperature=.* must be above 0"):
        make_rule(SamplingInfo("keyed", temperature, 0), 20, CPU)


def test_unknown_mode() -> None:
    with pytest.raises(UserError, match="use greedy, keyed or rejection"):
        make_rule(SamplingInfo("nucleus", 1.0, 0), 20, CPU)  # type: ignore[arg-type]
