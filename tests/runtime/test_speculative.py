from collections.abc import Sequence
from itertools import chain
from typing import Any

import pytest
import torch

from policies.errors import UserError
from runtime.pass_listener import PassListener
from runtime.prompts import Prompt
from runtime.speculative import SpeculativeDecoder
from runtime.stopping import StopRule
from runtime.verify_rules import KeyedRule, make_rule
from traces.manifest import SamplingInfo

END = 5
VOCABULARY = 30


def one_hot(tokens: Sequence[int]) -> torch.Tensor:
    return torch.nn.functional.one_hot(torch.tensor(tokens), VOCABULARY).float()


class ScriptedModel:
    """Continues position p with script[p + 1], whatever the text; checks what it is fed."""

    def __init__(self, script: dict[int, int]) -> None:
        self.script = script
        self.text: list[int] = []
        self.fail_at: int | None = None
        self.forwards = 0

    @property
    def length(self) -> int:
        return len(self.text)

    def prefill(self, tokens: Sequence[int]) -> torch.Tensor:
        self.text = []
        return self.forward(tokens)[-1:]

    def forward(self, tokens: Sequence[int]) -> torch.Tensor:
        self.text += tokens
        self.forwards += 1
        if self.forwards == self.fail_at:
            raise RuntimeError("out of memory")
        places = range(len(self.text) - len(tokens) + 1, len(self.text) + 1)
        return one_hot([self.script.get(place, 1) for place in places])

    def cut(self, length: int) -> None:
        assert 0 <= length <= len(self.text)
        del self.text[length:]

    def reach(self, text: Sequence[int], gamma: int) -> int:
        return gamma

    def next_logits(self, text: Sequence[int]) -> torch.Tensor:
        assert list(text[: self.length]) == self.text, "not the text in the cache"
        return self.forward(text[self.length :])[-1]

    def forget_after(self, length: int) -> None:
        del self.text[length:]


class Diary(PassListener):
    """Writes down every call; can ask for gammas and fail at a call."""

    def __init__(self, gammas: Sequence[int] = (), fail_at: str | None = None) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.gammas, self.fail_at = list(gammas), fail_at

    def _note(self, *call: Any) -> None:
        self.calls.append(call)
        if call[0] == self.fail_at:
            raise RuntimeError("listener failed")

    def start_request(self, request: int, prompt: Sequence[int]) -> None:
        self._note("start_request", request, list(prompt))

    def after_prefill(self, prompt: Sequence[int], token: int, margin: float) -> None:
        self._note("after_prefill", token)

    def start_pass(self, last_token: int, gamma_max: int) -> int:
        self._note("start_pass", last_token)
        return self.gammas.pop(0) if self.gammas else gamma_max

    def draft_step(self, step: int, token: int, margin: float) -> None:
        self._note("draft_step", step, token)

    def before_verify(self, rows: Sequence[int]) -> None:
        self._note("before_verify", list(rows))

    def after_verify(self, start: int, rows: Sequence[int], verdict: Any) -> None:
        self._note("after_verify", start, verdict.accepted)

    def end_pass(self, accepted: int, committed: Sequence[int]) -> None:
        self._note("end_pass", accepted, list(committed))

    def end_request(self, reason: str) -> None:
        self._note("end_request", reason)


PROMPT = [20, 21, 22]
GREEDY = KeyedRule(1.0, None)


def scripts(tokens: Sequence[int], drafts: Sequence[int]) -> tuple[ScriptedModel, ScriptedModel]:
    """A target that continues PROMPT with `tokens`, a draft that proposes `drafts` there."""
    places = range(len(PROMPT), len(PROMPT) + 100)
    return (
        ScriptedModel(dict(zip(places, tokens, strict=False))),
        ScriptedModel(dict(zip(places, drafts, strict=False))),
    )


def test_calls_in_order() -> None:
    target, draft = scripts([10, 11, 12, 13, 14, 15], [10, 11, 12, 9, 14, 15])
    diary = Diary()
    decoder = SpeculativeDecoder(target, draft, GREEDY, 3, diary)
    blocks = list(decoder.generate(4, PROMPT, StopRule(6)))
    assert blocks == [[10], [11, 12, 13], [14, 15]]
    assert diary.calls == [
        ("start_request", 4, PROMPT),
        ("after_prefill", 10),
        ("start_pass", 10),
        ("draft_step", 0, 11),
        ("draft_step", 1, 12),
        ("draft_step", 2, 9),
        ("before_verify", [10, 11, 12, 9]),
        ("after_verify", 3, 2),
        ("end_pass", 2, [11, 12, 13]),
        ("start_pass", 13),
        ("draft_step", 0, 14),
        ("draft_step", 1, 15),
        ("draft_step", 2, 1),
        ("before_verify", [13, 14, 15, 1]),
        ("after_verify", 6, 3),
        ("end_pass", 2, [14, 15]),
        ("end_request", "length"),
    ]


@pytest.mark.parametrize("place", range(5))
def test_end_token_at_each_place_of_the_block(place: int) -> None:
    """transformers#47912: an end token may stand anywhere in an accepted block."""
    block = [6, 7, 8, 9, 10]
    block[place] = END
    target, draft = scripts([2, *block], [2, *block[:4]])
    decoder = SpeculativeDecoder(target, draft, GREEDY, 4)
    streamed = [
        token
        for part in decoder.generate(0, PROMPT, StopRule(50, frozenset({END})))
        for token in part
    ]
    assert streamed == [2, *block[: place + 1]]
    # The caches keep what was read of the text: all, unless it ends with the target's own token.
    read = [*PROMPT, *streamed] if place < 4 else [*PROMPT, *streamed[:-1]]
    assert target.text == read
    assert draft.text == read[: len(draft.text)]


def test_end_token_right_after_the_prompt() -> None:
    target, draft = scripts([END, 6, 7], [END, 6, 7])
    diary = Diary()
    decoder = SpeculativeDecoder(target, draft, GREEDY, 2, diary)
    assert list(decoder.generate(0, PROMPT, StopRule(9, frozenset({END})))) == [[END]]
    assert diary.calls[-1] == ("end_request", "end_token")


@pytest.mark.parametrize("limit", range(1, 8))
def test_length_limit_cuts_the_block(limit: int) -> None:
    tokens = [6, 7, 8, 9, 10, 11, 12, 13]
    target, draft = scripts(tokens, tokens)
    parts = list(SpeculativeDecoder(target, draft, GREEDY, 4).generate(0, PROMPT, StopRule(limit)))
    assert list(chain.from_iterable(parts)) == tokens[:limit]
    assert [*PROMPT, *tokens][: target.length] == target.text
    assert target.length in (len(PROMPT) + limit - 1, len(PROMPT) + limit)


def test_stop_string_cuts_the_block() -> None:
    tokens = [6, 7, 8, 9, 10, 11]
    target, draft = scripts(tokens, tokens)
    stop = StopRule(50, stop_strings=("8,9",), decode=lambda t: ",".join(map(str, t)))
    parts = list(SpeculativeDecoder(target, draft, GREEDY, 4).generate(0, PROMPT, stop))
    assert list(chain.from_iterable(parts)) == [6, 7, 8, 9]
    assert target.text == [*PROMPT, 6, 7, 8, 9]


def test_gamma_may_change_in_every_pass() -> None:
    tokens = list(range(6, 26))
    target, draft = scripts(tokens, tokens)
    diary = Diary(gammas=[0, 3, 0, 0, 1, 4])
    parts = list(
        SpeculativeDecoder(target, draft, GREEDY, 4, diary).generate(0, PROMPT, StopRule(20))
    )
    assert [len(part) for part in parts] == [1, 1, 4, 1, 1, 2, 5, 5]
    assert list(chain.from_iterable(parts)) == tokens


@pytest.mark.parametrize("gamma", [-1, 5])
def test_a_gamma_out_of_range_is_refused(gamma: int) -> None:
    target, draft = scripts([6, 7], [6, 7])
    decoder = SpeculativeDecoder(target, draft, GREEDY, 4, Diary(gammas=[gamma]))
    with pytest.raises(ValueError, match=r"allowed is 0..4"):
        list(decoder.generate(0, PROMPT, StopRule(9)))


@pytest.mark.parametrize("call", ["start_pass", "draft_step", "before_verify", "after_verify"])
def test_an_error_inside_a_pass_leaves_the_caches_at_the_committed_text(call: str) -> None:
    tokens = list(range(6, 26))
    target, draft = scripts(tokens, tokens)
    diary = Diary()
    stream = SpeculativeDecoder(target, draft, GREEDY, 3, diary).generate(0, PROMPT, StopRule(20))
    committed = [*PROMPT, *next(stream), *next(stream)]
    diary.fail_at = call
    with pytest.raises(RuntimeError, match="listener failed"):
        next(stream)
    assert target.text == committed[:-1]
    assert draft.text == committed[: len(draft.text)]


@pytest.mark.parametrize("model", ["target", "draft"])
def test_a_failing_forward_leaves_the_caches_at_the_committed_text(model: str) -> None:
    tokens = list(range(6, 26))
    target, draft = scripts(tokens, tokens)
    stream = SpeculativeDecoder(target, draft, GREEDY, 3).generate(0, PROMPT, StopRule(20))
    committed = [*PROMPT, *next(stream), *next(stream)]
    failing = target if model == "target" else draft
    failing.fail_at = failing.forwards + (1 if model == "target" else 2)
    with pytest.raises(RuntimeError, match="out of memory"):
        next(stream)
    assert target.text == committed[:-1]
    assert draft.text == committed[: len(draft.text)]
    again = SpeculativeDecoder(target, draft, GREEDY, 3).generate(1, PROMPT, StopRule(20))
    assert list(chain.from_iterable(again)) == tokens, "a new request works after the error"


def test_closing_the_stream_early_leaves_the_caches_at_the_committed_text() -> None:
    tokens = list(range(6, 26))
    target, draft = scripts(tokens, tokens)
    stream = SpeculativeDecoder(target, draft, GREEDY, 3).generate(0, PROMPT, StopRule(20))
    committed = [*PROMPT, *next(stream), *next(stream)]
    stream.close()
    assert target.text == committed[:-1]


def test_unusable_input() -> None:
    target, draft = scripts([6], [6])
    with pytest.raises(UserError, match="gamma=2 needs a draft"):
        SpeculativeDecoder(target, None, GREEDY, 2)
    with pytest.raises(UserError, match="the prompt is empty"):
        list(SpeculativeDecoder(target, draft, GREEDY, 2).generate(0, [], StopRule(5)))


def reference_text(model: Any, prompt: Sequence[int], rule: KeyedRule, length: int) -> list[int]:
    """Decoding without cache, draft or loop of ours: one whole forward per token."""
    text = list(prompt)
    while len(text) < len(prompt) + length:
        with torch.inference_mode():
            logits = model.module(input_ids=torch.tensor([text]), use_cache=False).logits[0, -1:]
        text += rule.choose(logits, 0, len(text))[0]
    return text[len(prompt) :]


@pytest.mark.parametrize("mode", ["greedy", "keyed"])
def test_every_gamma_gives_the_text_of_the_target_alone(
    tiny: Any, tiny_prompts: list[Prompt], mode: Any
) -> None:
    rule = make_rule(SamplingInfo(mode, 0.8, 9), 64, torch.device("cpu"))
    prompt = tiny_prompts[2].tokens
    expected = reference_text(tiny.target, prompt, rule, 40)
    passes = {}
    for gamma in (0, 1, 2, 4, 8):
        decoder = SpeculativeDecoder(tiny.target, tiny.draft, rule, gamma)
        parts = list(decoder.generate(0, prompt, StopRule(40)))
        assert list(chain.from_iterable(parts)) == expected
        passes[gamma] = len(parts)
    assert passes[0] == 40
    assert passes[4] < 36, "the draft is never right: this test proves nothing"


def test_trained_pair_gives_one_text_for_every_gamma(trained: Any) -> None:
    rule = make_rule(
        SamplingInfo("keyed", 0.8, 9), trained.target.facts.vocabulary, torch.device("cpu")
    )
    texts = set()
    for gamma in (0, 1, 2, 4, 8):
        decoder = SpeculativeDecoder(trained.target, trained.draft, rule, gamma)
        parts = decoder.generate(0, [0, 300, 400, 500], StopRule(64))
        texts.add(tuple(chain.from_iterable(parts)))
    assert len(texts) == 1
