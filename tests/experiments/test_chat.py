"""`spac run` without a prompt, driven through a terminal as a person would, and its parts."""

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.answers import printable
from experiments.conversation import Conversation
from experiments.interrupts import NOTICE
from runtime.checkpoints import SHIPPED_PAIR
from runtime.tiny import TinyShape, make_tiny_pair
from runtime.tokenizers import Tokenizer
from traces.runlog import read_runlog

TIMEOUT = 180


class Terminal:
    """A command in a pseudo terminal."""

    def __init__(self, words: list[str], folder: Path) -> None:
        ours, theirs = pty.openpty()
        self._ours = ours
        self.process = subprocess.Popen(
            [sys.executable, "-m", "experiments", *words],
            stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, start_new_session=True,
            preexec_fn=lambda: _own(theirs),
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TERM": "dumb"},
        )  # fmt: skip
        os.close(theirs)
        self.seen = ""

    def expect(self, pattern: str) -> str:
        """Read until `pattern` appears; what came before it."""
        if not self.appears(pattern, TIMEOUT):
            pytest.fail(f"no {pattern!r} in {self.seen!r}")
        found = re.search(pattern, self.seen)
        assert found is not None
        before, self.seen = self.seen[: found.start()], self.seen[found.end() :]
        return before

    def appears(self, pattern: str, seconds: float) -> bool:
        """Read until `pattern` appears or time is over."""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            if not select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return False
            try:
                self.seen += os.read(self._ours, 4096).decode(errors="replace").replace("\r", "")
            except OSError:
                pytest.fail(f"ended without {pattern!r}: {self.seen!r}")
        return True

    def press_ctrl_c(self, answer: str) -> None:
        """Until `answer` appears. A signal in the moment between a prompt and the wait for input is
        only seen by Python's readline when something else happens: a person presses again."""
        for _ in range(TIMEOUT // 5):
            self.type("\x03")
            if self.appears(answer, 5.0):
                self.expect(answer)
                return
        pytest.fail(f"no {answer!r} after Ctrl-C in {self.seen!r}")

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def end(self) -> int:
        code = self.process.wait(timeout=TIMEOUT)
        os.close(self._ours)
        return code


def _own(terminal: int) -> None:
    """Make it the controlling terminal, so that Ctrl-C becomes a signal."""
    import fcntl
    import termios

    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pair")
    make_tiny_pair(path, seed=3, shape=TinyShape(layers=3, max_positions=4096))
    return path


def words(pair: Path, *more: str) -> list[str]:
    return [
        "run", f"target={pair / 'target'}", f"draft_path={pair / 'draft'}", "policy=lru_cpu",
        "cache_ratio=0.3", "sampling.temperature=2.0", *more,
    ]  # fmt: skip


def test_a_person_chats(pair: Path, tmp_path: Path) -> None:
    terminal = Terminal(words(pair, "paced=false", "max_new_tokens=12"), tmp_path)
    terminal.expect("no chat template in this tokenizer.*/reset forgets")
    terminal.expect("\n> ")
    terminal.type("w7 w8 w9\n")
    terminal.expect("w7 w8 w9\n")  # the terminal's echo
    first = terminal.expect(r"\n12 tokens, [\d.]+ tokens/s, \d+% of checked drafts accepted, \d+%")
    assert len(re.findall(r"w\d+", first)) == 12
    terminal.expect("\n> ")
    terminal.type("/help\n")
    terminal.expect("Ctrl-C stops an answer\n> ")
    terminal.type("/rest\n")
    terminal.expect("/rest: there are /reset, /exit, /help\n> ")
    terminal.type("/reset\n")
    terminal.expect("forgotten\n> ")
    terminal.press_ctrl_c("/exit or Ctrl-D leaves\n> ")
    terminal.type("w7 w8 w9\n")
    terminal.expect("12 tokens, .*hit\n> ")
    terminal.type("\x04")
    assert terminal.end() == 0
    folder = tmp_path / "outputs" / "run" / "latest"
    log = read_runlog(folder / "runlog")
    assert log.info.complete
    prompts = log.passes[log.passes["phase"] == 0]["rows"].tolist()
    assert prompts == [3, 3], "after /reset the model is given the new line alone"
    assert len(json.loads((folder / "texts.json").read_text())) == 2


def test_ctrl_c_stops_the_answer_and_not_the_chat(pair: Path, tmp_path: Path) -> None:
    terminal = Terminal(words(pair, "paced=true", "max_new_tokens=3000"), tmp_path)
    terminal.expect("\n> ")
    terminal.type("w7\n")
    terminal.expect(r"w7\nw\d+ w\d+ w\d+ ")
    terminal.type("\x03")
    terminal.expect(re.escape(NOTICE.decode().strip()))
    terminal.expect(r"\d+ tokens, .*\nstopped\n> ")
    terminal.type("/exit\n")
    assert terminal.end() == 0
    log = read_runlog(tmp_path / "outputs" / "run" / "latest" / "runlog")
    assert log.info.complete
    assert 1 < log.passes["committed"].sum() < 3000


def test_a_full_conversation_says_so(tmp_path: Path) -> None:
    make_tiny_pair(tmp_path, seed=3, shape=TinyShape(layers=2, max_positions=24))
    given = words(tmp_path, "paced=false", "max_new_tokens=12", "gamma=2")
    terminal = Terminal(given, tmp_path)
    terminal.expect("\n> ")
    terminal.type("w7 w8 w9 w10 w11 w12 w13 w14\n")
    terminal.expect("12 tokens, .*\n> ")
    terminal.type("w7 w8\n")
    terminal.expect("22 tokens, and there is room for 22: /reset forgets\n> ")
    terminal.type("/exit\n")
    assert terminal.end() == 0


def test_plain_lines_follow_each_other() -> None:
    tokenizer = Tokenizer(SHIPPED_PAIR / "target")
    talk = Conversation(tokenizer)
    assert "plain text" in talk.style
    assert tokenizer.decode(talk.ask("one")) == "one\n"
    talk.answered("two")
    assert tokenizer.decode(talk.ask("three")) == "one\ntwo\nthree\n"
    talk.take_back()
    assert tokenizer.decode(talk.ask("four")) == "one\ntwo\nfour\n"
    talk.reset()
    assert tokenizer.decode(talk.ask("five")) == "five\n"


def test_a_template_frames_the_turns(tmp_path: Path) -> None:
    template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
    (tmp_path / "chat_template.jinja").write_text(template)
    source = SHIPPED_PAIR / "target" / "tokenizer.json"
    (tmp_path / "tokenizer.json").write_bytes(source.read_bytes())
    talk = Conversation(Tokenizer(tmp_path))
    assert talk.style == "chat template of the tokenizer"
    talk.ask("hi")
    talk.answered("ho")
    text = Tokenizer(tmp_path).decode(talk.ask("hi"))
    assert text == "<user>hi<assistant>ho<user>hi<assistant>"


def test_a_model_does_not_steer_the_terminal() -> None:
    assert printable("a\x1b[31mb\tc\nd\x07\x9b\rü😀") == "a\ufffd[31mb\tc\nd\ufffd\ufffd\ufffdü😀"
