import json
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from experiments.commands import COMMANDS
from experiments.configuration import compose_config
from experiments.record import run
from policies.errors import UserError
from traces.reader import open_trace


@pytest.fixture
def config(tiny_path: Path, tmp_path: Path) -> dict[str, Any]:
    prompts = tmp_path / "mine.jsonl"
    lines = [{"id": f"p{n}", "text": f"w{n + 7} w{n + 9} w{n + 20}"} for n in range(4)]
    prompts.write_text("\n".join(json.dumps(line) for line in lines))
    return {
        "target": str(tiny_path / "target"),
        "draft_path": str(tiny_path / "draft"),
        "workload": ["mine"],
        "prompts": str(prompts),
        "out": str(tmp_path / "out"),
        "kind": "dense",
        "gamma": 3,
        "sampling": {"mode": "keyed", "temperature": 0.8, "seed": 2},
        "max_new_tokens": 12,
        "requests": 3,
        "device": "cpu",
        "dtype": "float32",
        "next_layer": True,
        "router_weights": False,
        "threads": None,
        "outputs": str(tmp_path / "outputs"),
    }


def test_dense(config: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(OmegaConf.create(config)) == 0
    trace = open_trace(tmp_path / "out" / "mine", verify=True)
    assert (trace.manifest.kind, trace.manifest.gamma_max) == ("dense", 3)
    assert trace.manifest.lookahead == 3
    assert set(trace.load().request.tolist()) == {0, 1, 2}
    assert len(trace.manifest.notes["tokenizer"]) == 64
    printed = capsys.readouterr().out
    assert "3 requests" in printed
    assert "tokens/s" in printed


def test_the_limits_of_sampling_are_in_the_notes_and_in_the_text(
    config: dict[str, Any], tmp_path: Path
) -> None:
    texts = []
    for name, limits in (("free", {}), ("limited", {"top_k": 1}), ("off", {"top_k": None})):
        sampling = config["sampling"] | limits
        given = config | {"workload": [name], "sampling": sampling}
        assert run(OmegaConf.create(given)) == 0
        trace = open_trace(tmp_path / "out" / name, verify=True)
        assert trace.manifest.notes.get("top_k") == ("1" if limits.get("top_k") else None)
        texts.append(trace.load().input_token.tolist())
    assert texts[0] == texts[2] != texts[1]


def test_plain_decoding_of_one_named_workload(config: dict[str, Any], tmp_path: Path) -> None:
    config |= {
        "kind": "windowed",
        "gamma": 0,
        "draft_path": "none",
        "workload": "plain",
        "requests": None,
    }
    assert run(OmegaConf.create(config)) == 0
    manifest = open_trace(tmp_path / "out" / "plain").manifest
    assert (manifest.kind, manifest.draft, manifest.workload) == ("windowed", None, "plain")


def test_numbered_output_folder(config: dict[str, Any], tmp_path: Path) -> None:
    config |= {"out": None, "requests": 1}
    for number in ("1", "2"):
        assert run(OmegaConf.create(config)) == 0
        folder = tmp_path / "outputs" / "record" / number
        assert open_trace(folder / "mine", verify=True).manifest.complete
        assert json.loads((folder / "run.json").read_text())["config"]["gamma"] == 3


def test_a_folder_whose_settings_cannot_be_written_goes_again(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("experiments.record.write_run_file", full)
    with pytest.raises(OSError, match="No space"):
        run(OmegaConf.create(config | {"out": None, "requests": 1}))
    assert list((tmp_path / "outputs" / "record").iterdir()) == []


def test_an_existing_trace_is_refused_before_recording(
    config: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "out" / "mine").mkdir(parents=True)
    with pytest.raises(UserError, match="never overwritten"):
        run(OmegaConf.create(config))


def test_the_command_line_gives_the_keys_that_are_read(config: dict[str, Any]) -> None:
    assert set(compose_config(COMMANDS["record"], [])) == set(config)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "text"}, "kind=text cannot be recorded"),
        ({"draft_path": "none"}, "kind=dense needs a draft"),
        ({"draft_path": None}, "kind=dense needs a draft"),
        ({"workload": ["a", "b"]}, "name exactly one"),
        ({"workload": ["a", "a"]}, "one of them twice"),
        ({"workload": []}, "names none"),
        ({"requests": 5}, "has 4 prompts"),
        ({"requests": 0}, "has 4 prompts"),
        ({"target": "/nowhere"}, r"no config.json"),
        ({"dtype": "int4"}, "dtype=int4"),
        ({"device": "cuda:77"}, "device=cuda:77"),
        ({"prompts": "/nowhere.jsonl"}, "no such file"),
        ({"prompts": None, "workload": ["chat"]}, "workload=chat is unknown"),
    ],
)
def test_bad_input_is_one_line_for_the_user(
    config: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        run(OmegaConf.create(config | change))
    assert "\n" not in str(caught.value)
