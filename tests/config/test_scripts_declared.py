"""Scripts as configuration: each step one verb, inputs checked, compiled into turns."""

from __future__ import annotations

from datetime import timedelta

import pytest

from config.folder import Folder
from nightherd.model.agents.script import (
    End,
    Fail,
    Repeat,
    Say,
    Sleep,
    Spend,
    Think,
    UseTool,
    compile_script,
)
from nightherd.model.units import MicroUsd
from nightherd.model.usage import Usage


def errors_of(folder: Folder, step: str) -> list[str]:
    folder.fleet(f"agents:\n  - name: a\n    runtime: scripted\n    script:\n      - {step}\n")
    return [error.removeprefix("nightherd.yaml:5:") for error in folder.errors()]


def test_a_script_becomes_the_steps_it_says(folder: Folder) -> None:
    folder.fleet("""\
        agents:
          - name: a
            runtime: scripted
            script:
              - think: hm
              - say: hello ${prompt}
              - tool: Bash
                input: {command: "ls", timeout: 2s}
              - tool: Bash
                input: {command: "ls", timeout: 1500}
              - tool: Read
                input: {file_path: a, offset: 2}
              - tool: Edit
                input: {file_path: a, old_string: x, new_string: ""}
              - tool: Glob
                input: {pattern: "**/*.py"}
              - tool: Grep
                input: {pattern: x, path: src, ignore_case: true}
              - usage: {input_tokens: 3, output_tokens: 4, cost_usd: "$0.000001"}
              - end: true
              - sleep: 200ms
              - repeat: 3
                steps:
                  - tool: Write
                    input: {file_path: "${turn}", content: ""}
              - fail: {code: oh, message: no}
              - fail: {}
        """)

    assert folder.agent("a").script == compile_script(
        [
            Think("hm"),
            Say("hello ${prompt}"),
            UseTool("Bash", {"command": "ls", "timeout": 2000}),
            UseTool("Bash", {"command": "ls", "timeout": 1500}),
            UseTool("Read", {"file_path": "a", "offset": 2}),
            UseTool(
                "Edit",
                {"file_path": "a", "old_string": "x", "new_string": "", "replace_all": False},
            ),
            UseTool("Glob", {"pattern": "**/*.py"}),
            UseTool(
                "Grep", {"pattern": "x", "path": "src", "ignore_case": True, "mode": "content"}
            ),
            Spend(Usage(input_tokens=3, output_tokens=4, cost_microusd=MicroUsd(1))),
            End(),
            Sleep(timedelta(milliseconds=200)),
            Repeat(3, (UseTool("Write", {"file_path": "${turn}", "content": ""}),)),
            Fail("oh", "no"),
            Fail("scripted_failure", "the script failed here"),
        ]
    )


@pytest.mark.parametrize(
    ("step", "found"),
    [
        ("{}", "9 a step needs one of say, think, tool, sleep, usage, fail, end, repeat"),
        ("hello", "9 expected a mapping of keys to values, got the text 'hello'"),
        ("{say: a, think: b}", "18 a step has one verb; this one has say, think"),
        ("{say: a, input: {}}", "18 unknown key 'input'"),
        ("{say: [a]}", "15 expected text, got a list"),
        ("{sya: a}", "10 unknown key 'sya'"),
        (
            "{tool: Bsh, input: {command: x}}",
            "16 'Bsh' is not one of Bash, Read, Write, Edit, Glob, Grep",
        ),
        ("{tool: Bash}", "10 'input' is missing"),
        ("{tool: Bash, input: {comand: x}}", "30 unknown key 'comand'"),
        ("{tool: Bash, input: {command: ''}}", "39 must not be empty"),
        ("{tool: Bash, input: {command: x, timeout: never}}", "51 'never' is not a duration"),
        ("{tool: Read, input: {file_path: x, offset: -1}}", "52 expected at least 0"),
        ("{tool: Write, input: {file_path: x}}", "31 'content' is missing"),
        ("{tool: Edit, input: {file_path: x, old_string: a}}", "30 'new_string' is missing"),
        ("{sleep: 5}", "17 expected a duration such as 30m, got the number 5"),
        ("{usage: {input_tokens: -1}}", "32 expected at least 0"),
        ("{usage: {tokens: 1}}", "18 unknown key 'tokens'"),
        ("{fail: {message: 5}}", "26 expected text, got the number 5"),
        ("{end: false}", "10 expected true: a step that ends nothing is none"),
        ("{repeat: 0, steps: [{say: x}]}", "18 expected at least 1"),
        ("{repeat: 2}", "10 'steps' is missing"),
        ("{repeat: 2, steps: []}", "28 must not be empty"),
        ("{repeat: 2, steps: [{say: x}, {say: [y]}]}", "45 expected text, got a list"),
    ],
)
def test_a_wrong_step_is_one_located_problem(folder: Folder, step: str, found: str) -> None:
    errors = errors_of(folder, step)

    assert len(errors) == 1, errors
    assert errors[0].startswith(found)


def test_a_script_nobody_plays_is_told(folder: Folder) -> None:
    folder.fleet(
        "agents: [{name: a, runtime: scripted, script: [{say: x}]}, {name: b, script: [{say: x}]}]\n"
    )

    assert folder.notices() == ["nightherd.yaml:1:70 'script' is not used: the runtime is sdk"]


def test_a_script_file_that_holds_no_list_is_refused(folder: Folder) -> None:
    folder.write("script.yaml", "say: hello\n")
    folder.fleet("agents: [{name: a, runtime: scripted, script: script.yaml}]\n")

    assert folder.errors() == ["script.yaml:1:1 expected a list, got a mapping"]


def test_a_huge_repeat_costs_nothing_to_load(folder: Folder) -> None:
    inner = "{say: x}"
    for _ in range(5):
        inner = f"{{repeat: 1000000, steps: [{inner}]}}"
    folder.fleet(f"agents: [{{name: a, runtime: scripted, script: [{inner}]}}]\n")

    script = folder.agent("a").script

    assert script is not None
    assert script.turn_count == 1000000**5


def test_a_native_agent_may_play_a_script(folder: Folder) -> None:
    folder.fleet("agents: [{name: a, runtime: native, script: [{say: hello}]}]\n")

    assert folder.notices() == []


def test_a_native_agent_needs_a_model_or_a_script(folder: Folder) -> None:
    folder.fleet("agents: [{name: a, runtime: native}]\n")

    assert folder.errors() == [
        "nightherd.yaml:1:29 a native agent needs a 'model': write provider:name"
    ]
