"""Values that no file can hold, from commands and from the command line: the run goes on or fails, and never hangs."""

from __future__ import annotations

from pathlib import Path

import pytest

from surfaces.drivers import Cli

ANSWERS = """\
workflows:
  answer:
    inputs: {text: text}
    phases:
      - name: give
        bash: cat
        stdin: ${inputs.text}
        output: {type: object, properties: {a: {}}, required: [a]}
      - name: take
        bash: cat
        stdin: ${phases.give.output.a}
  take:
    inputs: {list: {type: list, default: []}}
    phases:
      - {name: take, bash: cat, stdin: "${inputs.list}"}
"""


@pytest.fixture(autouse=True)
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nightherd.yaml").write_text(ANSWERS)
    monkeypatch.chdir(tmp_path)


def test_answer_with_half_of_a_character_is_taken_with_a_replacement(cli: Cli) -> None:
    result = cli("workflow", "run", "answer", "--input", r'text={"a": "cut \ud83d"}', "--wait")

    assert (result.code, result.err.count("succeeded")) == (0, 1)
    assert cli("runs", "show", "@last", "--output", "take").out == "cut \ufffd\n"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ('{"a": NaN}', "JSON has no NaN"),
        ('{"a": 1e999}', "a number that is too large"),
        ('{"a": ' + "[" * 2000 + "]" * 2000 + "}", "nested more than 100 levels deep"),
    ],
)
def test_answer_that_cannot_be_stored_fails_its_phase(cli: Cli, answer: str, reason: str) -> None:
    result = cli("workflow", "run", "answer", "--input", f"text={answer}", "--wait")

    assert result.code == 1
    assert "give failed: the answer is not JSON: " in result.err
    assert reason in result.err


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("[NaN]", "JSON has no NaN"),
        ("[" * 2000 + "]" * 2000, "nested more than 100 levels deep"),
        ("[a, b]", "Expecting value"),
    ],
)
def test_input_that_is_not_json_is_refused(cli: Cli, value: str, reason: str) -> None:
    result = cli("workflow", "run", "take", "--input", f"list={value}")

    assert result.code == 2
    assert "is not a list" in result.err
    assert reason in result.err


def test_input_with_half_of_a_character_is_taken_with_a_replacement(cli: Cli) -> None:
    result = cli("workflow", "run", "take", "--input", r'list=["\ud800"]', "--wait")

    assert result.code == 0
    assert cli("runs", "show", "@last", "--output", "take").out == '["\ufffd"]\n'
