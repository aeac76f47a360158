"""Telling: problems as text, data and annotations; a fleet with the origin of each value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from config.folder import Folder
from nightherd.config.report import render_problems
from nightherd.config.show import render_show, show
from nightherd.errors import AgentNotFoundError
from nightherd.model.problem import Place, Problem, Severity


def test_text_has_the_place_the_line_the_mark_and_the_hint(folder: Folder) -> None:
    folder.write("agents/a.yaml", "name: a\nsession:\n  mod: persistent\n")
    folder.fleet("agents: [{path: agents/a.yaml}]\n")

    assert render_problems(folder.check().problems, cwd=folder.root) == (
        "agents/a.yaml:3:3: unknown key 'mod'  [agents.a.session.mod]\n"
        "      mod: persistent\n"
        "      ^^^\n"
        "    did you mean 'mode'?\n"
    )


def test_files_outside_the_working_directory_are_named_in_full(folder: Folder) -> None:
    folder.fleet("agnets: []\n")

    text = render_problems(folder.check().problems, cwd=folder.root / "elsewhere")

    assert text.startswith(f"{folder.root}/nightherd.yaml:1:1: ")


def test_the_mark_stands_under_its_text_also_behind_tabs_and_wide_lines() -> None:
    problem = Problem(
        place=Place(file="/f.yaml", line=1, column=4), message="m", text="\ta: xyz", width=99
    )

    assert render_problems([problem], cwd=Path("/")).splitlines()[1:] == [
        "    \ta: xyz",
        "    \t  ^^^^",
    ]


def test_control_characters_never_reach_the_terminal(folder: Folder) -> None:
    folder.fleet('agents: [{name: a, "\\e[2J\\a": 1, model: ["\\e]0;x"]}]\n')

    text = render_problems(folder.check().problems, cwd=folder.root)

    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\\x1b[2J" in text


def test_json_is_one_object_per_problem(folder: Folder) -> None:
    folder.fleet("agents: [{name: a, modle: x, runtime: native, plugins: []}]\n")

    assert json.loads(render_problems(folder.check().problems, "json", cwd=folder.root)) == [
        {
            "file": "nightherd.yaml",
            "line": 1,
            "column": 20,
            "severity": "error",
            "message": "unknown key 'modle'",
            "path": "agents.a.modle",
            "hint": "did you mean 'model'?",
        },
        {
            "file": "nightherd.yaml",
            "line": 1,
            "column": 47,
            "severity": "notice",
            "message": "'plugins' is not active yet: running agents with Claude",
            "path": "agents.a.plugins",
            "hint": None,
        },
    ]


def test_annotations_are_escaped_as_github_wants_them() -> None:
    place = Place(file="/r/a,b:c.yaml", line=2, column=3)
    problems = [
        Problem(place=place, message="100%\nwrong", hint="so: there", width=4),
        Problem(place=place, message="later", severity=Severity.NOTICE),
    ]

    assert render_problems(problems, "github", cwd=Path("/r")) == (
        "::error file=a%2Cb%3Ac.yaml,line=2,col=3,endColumn=7::100%25%0Awrong (so: there)\n"
        "::notice file=a%2Cb%3Ac.yaml,line=2,col=3,endColumn=4::later\n"
    )


def test_no_problems_are_no_text(folder: Folder) -> None:
    assert render_problems([], cwd=folder.root) == ""
    assert json.loads(render_problems([], "json", cwd=folder.root)) == []


def shown_fleet(folder: Folder) -> Folder:
    folder.write("agents/a.yaml", "name: a\nmodel: agent\nsession: {mode: persistent}\n")
    return folder.fleet("""\
        fleet: {name: garden}
        defaults:
          docker: {enabled: true, tmpfs: [/tmp]}
          job_timeout: 30m
        agents:
          - path: agents/a.yaml
            overrides: {model: override}
          - {name: b, runtime: scripted, script: [{say: "x"}], mcp_servers: {m: {url: u}}}
        """)


def test_each_value_has_the_file_and_line_it_came_from(folder: Folder) -> None:
    shown = show(shown_fleet(folder).load(), cwd=folder.root)

    assert shown["fleet"]["fleet"]["name"] == {"value": "garden", "origin": "nightherd.yaml:1"}
    assert shown["fleet"]["version"] == {"value": 1, "origin": "default"}
    a, b = shown["agents"]["a"], shown["agents"]["b"]
    assert a["name"] == {"value": "a", "origin": "agents/a.yaml:1"}
    assert a["model"] == {"value": "override", "origin": "nightherd.yaml:7"}
    assert a["session"]["mode"] == {"value": "persistent", "origin": "agents/a.yaml:3"}
    assert a["session"]["auto_resume"] == {"value": True, "origin": "default"}
    assert a["docker"]["enabled"] == {"value": True, "origin": "nightherd.yaml:3"}
    assert a["docker"]["tmpfs"] == [{"value": "/tmp", "origin": "nightherd.yaml:3"}]
    assert a["docker"]["network"] == {"value": "bridge", "origin": "default"}
    assert a["job_timeout"] == {"value": "30m", "origin": "nightherd.yaml:4"}
    assert a["runtime"] == {"value": "sdk", "origin": "default"}
    assert a["working_directory"] == {"value": str(folder.root / "agents"), "origin": "default"}
    assert b["script"] == [{"say": {"value": "x", "origin": "nightherd.yaml:8"}}]
    assert b["mcp_servers"]["m"]["url"] == {"value": "u", "origin": "nightherd.yaml:8"}
    assert "model" not in b


def test_one_agent_can_be_shown_without_origins(folder: Folder) -> None:
    shown = show(shown_fleet(folder).load(), "a", origin=False, cwd=folder.root)

    assert list(shown) == ["agents"]
    assert list(shown["agents"]) == ["a"]
    assert shown["agents"]["a"]["model"] == "override"
    assert shown["agents"]["a"]["session"] == {"mode": "persistent", "auto_resume": True}


def test_the_text_says_each_value_once_with_its_origin(folder: Folder) -> None:
    lines = render_show(show(shown_fleet(folder).load(), "a", cwd=folder.root)).splitlines()

    assert [line.split() for line in lines if line.startswith("agents.a.model")] == [
        ["agents.a.model", "=", '"override"', "#", "nightherd.yaml:7"]
    ]
    assert any(line.startswith('agents.a.docker.tmpfs[0] = "/tmp"') for line in lines)
    assert any(line.endswith("# default") for line in lines)


def test_an_agent_that_is_not_there_is_not_shown(folder: Folder) -> None:
    with pytest.raises(AgentNotFoundError) as caught:
        show(shown_fleet(folder).load(), "aa", cwd=folder.root)

    assert caught.value.exit_code == 3


def test_shown_data_is_plain_json(folder: Folder) -> None:
    shown = show(shown_fleet(folder).load(), cwd=folder.root)

    assert json.loads(json.dumps(shown)) == shown
