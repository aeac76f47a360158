"""`nightherd workflow list|show|graph|check`: what the fleet's files declare, without a state directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from surfaces.drivers import Cli

FLEET = """\
agents:
  - {name: coder, runtime: scripted, script: []}
workflows:
  small:
    on: {api: false}
    phases: [{name: only, bash: 'echo "<a>"'}]
"""
BUILD = """\
description: Builds it.
inputs:
  title: {required: true, description: What to do.}
limits: {spend: 5, duration: 2h, turns: 3}
concurrency: {max_runs: 2, key: "${inputs.title}"}
working_directory: {mode: copy}
on:
  schedules:
    nightly: {cron: "0 2 * * *", inputs: {title: night}}
phases:
  - {name: plan, agent: coder, prompt: "Do ${inputs.title}", retries: 1}
  - name: rest
    depends_on: [plan]
    phases: [{name: test, bash: make test}, {name: pause, wait: 30m}]
  - {name: rescue, bash: make clean, depends_on: [plan, rest], trigger_rule: one_failed}
  - {name: ask, gate: {summary: "Push?"}, depends_on: [rest], when: "inputs.title != 'x'"}
"""
WRONG = """\
phases:
  - {name: a, bash: ls, depends_on: [b]}
  - {name: b, bash: ls, depends_on: [a]}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a fleet of two workflows; the test stands in it."""
    (tmp_path / "workflows").mkdir()
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    (tmp_path / "workflows" / "build.yaml").write_text(BUILD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_list_shows_what_starts_each_workflow(project: Path, cli: Cli) -> None:
    shown, rows = cli("workflow"), cli("workflow", "list", "--json").data

    assert shown.out.splitlines() == [
        "WORKFLOW  STATUS   PHASES  STARTED BY             ABOUT",
        "small     enabled  1       -                      -",
        "build     enabled  6       schedule nightly, api  Builds it.",
    ]
    assert [row["name"] for row in rows] == ["small", "build"]
    assert rows[1]["schedules"] == ["nightly"]
    assert (rows[0]["api"], rows[1]["inputs"]) == (False, ["title"])
    assert not (project / ".nightherd").exists()


def test_list_and_show_say_who_switched_a_workflow_off(project: Path, cli: Cli) -> None:
    cli("workflow", "disable", "build")

    shown, rows = cli("workflow"), cli("workflow", "list", "--json").data
    card, data = cli("workflow", "show", "build"), cli("workflow", "show", "build", "--json").data

    assert [line.split()[:2] for line in shown.out.splitlines()[1:]] == [
        ["small", "enabled"],
        ["build", "disabled"],
    ]
    assert [(row["is_enabled"], row["is_overridden"]) for row in rows] == [
        (True, False),
        (False, True),
    ]
    who = data["updated_by"]
    assert (data["is_enabled"], data["is_overridden"]) == (False, True)
    assert f"status      disabled by {who}, " in card.out


def test_list_of_a_fleet_without_workflows_says_where_to_write_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nightherd.yaml").write_text("agents: []\n")

    assert cli("workflow", "list").err == (
        "the fleet has no workflows; write one into workflows/NAME.yaml\n"
    )


def test_show_has_everything_that_people_ask_for(project: Path, cli: Cli) -> None:
    result = cli("workflow", "show", "build")

    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "workflow    build",
        "file        workflows/build.yaml:1",
        "status      enabled",
        "about       Builds it.",
        "input       title (text, required): What to do.",
        "schedule    nightly: 0 2 * * * (UTC)",
        "started by  api",
        "limits      spend $5.00, turns 3, duration 2h",
        "at once     2 runs for each ${inputs.title}, then queue",
        f"directory   {project} (copy, one for each run)",
        "",
        "├─ plan      agent coder      retries 1",
        "├─ rest      block            after plan",
        "│  ├─ test   bash make test",
        "│  └─ pause  wait 30m         after test",
        "├─ rescue    bash make clean  after plan, rest (one_failed)",
        "└─ ask       gate Push?       after rest; when inputs.title != 'x'",
    ]


def test_show_as_json_has_the_whole_definition(project: Path, cli: Cli) -> None:
    data = cli("workflow", "show", "small", "--json").data

    assert (data["file"], data["line"]) == ("nightherd.yaml", 5)
    assert data["definition"]["phases"][0]["action"]["command"] == 'echo "<a>"'
    assert len(data["hash"]) == 64


def test_graph_for_programs_that_draw(project: Path, cli: Cli) -> None:
    mermaid = cli("workflow", "graph", "build", "--format", "mermaid").out
    dot = cli("workflow", "graph", "build", "--format", "dot").out

    assert mermaid.splitlines() == [
        "flowchart TD",
        '  p1["plan: agent coder"]',
        '  subgraph p2["rest: block"]',
        '    p3["test: bash make test"]',
        '    p4["pause: wait 30m"]',
        "  end",
        '  p5["rescue: bash make clean"]',
        '  p6["ask: gate Push?"]',
        "  p1 --> p2",
        "  p3 --> p4",
        '  p1 -->|"one_failed"| p5',
        '  p2 -->|"one_failed"| p5',
        "  p2 -->|\"inputs.title != 'x'\"| p6",
    ]
    assert dot.splitlines() == [
        'digraph "build" {',
        "  compound=true;",
        "  node [shape=box];",
        '  p1 [label="plan: agent coder"];',
        "  subgraph cluster_p2 {",
        '    label="rest: block";',
        '    p3 [label="test: bash make test"];',
        '    p4 [label="pause: wait 30m"];',
        "  }",
        '  p5 [label="rescue: bash make clean"];',
        '  p6 [label="ask: gate Push?"];',
        "  p1 -> p3 [lhead=cluster_p2];",
        "  p3 -> p4;",
        '  p1 -> p5 [label="one_failed"];',
        '  p4 -> p5 [label="one_failed", ltail=cluster_p2];',
        "  p4 -> p6 [label=\"inputs.title != 'x'\", ltail=cluster_p2];",
        "}",
    ]


def test_graph_escapes_what_programs_would_obey(project: Path, cli: Cli) -> None:
    mermaid = cli("workflow", "graph", "small", "--format", "mermaid").out
    dot = cli("workflow", "graph", "small", "--format", "dot").out

    assert 'p1["only: bash echo #quot;&lt;a>#quot;"]' in mermaid
    assert r'p1 [label="only: bash echo \"<a>\""];' in dot


def test_graph_as_text_and_as_json(project: Path, cli: Cli) -> None:
    text, data = cli("workflow", "graph", "build").out, cli("workflow", "graph", "build", "--json")

    assert text.splitlines()[2] == "│  ├─ test   bash make test"
    assert data.data["edges"] == [
        {"from": "plan", "to": "rest"},
        {"from": "rest/test", "to": "rest/pause"},
        {"from": "plan", "to": "rescue"},
        {"from": "rest", "to": "rescue"},
        {"from": "rest", "to": "ask"},
    ]
    pause = data.data["phases"][3]
    assert (pause["path"], pause["parent"], pause["kind"]) == ("rest/pause", "rest", "wait")


def test_check_of_good_workflows(project: Path, cli: Cli) -> None:
    every, one = cli("workflow", "check"), cli("workflow", "check", "build")

    assert (every.code, every.out) == (0, "✔ ok nightherd.yaml: 2 workflows\n")
    assert (one.code, one.out) == (0, "✔ ok nightherd.yaml: build\n")
    assert cli("workflow", "check", "--json").data == {
        "file": "nightherd.yaml",
        "ok": True,
        "workflows": ["small", "build"],
        "problems": [],
    }


def test_check_reports_what_is_wrong_with_the_chosen_workflow(project: Path, cli: Cli) -> None:
    (project / "workflows" / "wrong.yaml").write_text(WRONG)
    (project / "workflows" / "torn.yaml").write_text("phases: [\n")

    every, good = cli("workflow", "check"), cli("workflow", "check", "build")
    wrong, torn = cli("workflow", "check", "wrong"), cli("workflow", "check", "torn", "--json")

    assert every.code == wrong.code == torn.code == 78
    assert "these phases wait for each other: a -> b -> a" in wrong.out
    assert "workflows/wrong.yaml:2:" in every.out
    assert "workflows/torn.yaml:" in every.out
    assert "torn.yaml" not in wrong.out
    assert wrong.err.endswith("1 error elsewhere in the fleet's files: nightherd config check\n")
    assert [one["file"] for one in torn.data["problems"]] == ["workflows/torn.yaml"]
    assert (good.code, good.out) == (0, "✔ ok nightherd.yaml: build\n")


def test_check_finds_outputs_that_nothing_reads(project: Path, cli: Cli) -> None:
    (project / "workflows" / "build.yaml").write_text(
        "phases:\n- {name: a, bash: ls, output: {type: object}}\n- {name: b, bash: ls}\n"
    )

    result = cli("workflow", "check", "build")

    assert (result.code, result.out) == (0, "✔ ok nightherd.yaml: build\n")
    assert result.err == ("notice: workflows/build.yaml:2:31: nothing reads the output of 'a'\n")


def test_check_leaves_what_is_wrong_elsewhere_to_config_check(project: Path, cli: Cli) -> None:
    (project / "nightherd.yaml").write_text("agents: [{name: coder, runtme: x}]\n")

    result = cli("workflow", "check")

    assert (result.code, result.out) == (0, "✔ ok nightherd.yaml: 1 workflow\n")
    assert result.err == "1 error elsewhere in the fleet's files: nightherd config check\n"


@pytest.mark.parametrize("command", ["show", "graph", "check"])
def test_a_workflow_that_is_not_there_is_not_found(project: Path, cli: Cli, command: str) -> None:
    near, far = cli("workflow", command, "biuld"), cli("workflow", command, "x")

    assert (near.code, far.code) == (3, 3)
    assert near.err == (
        "nightherd: the fleet has no workflow 'biuld'\n  try: nightherd workflow show build\n"
    )
    assert far.err.endswith("  try: nightherd workflow list\n")


def test_config_commands_know_workflows(project: Path, cli: Cli) -> None:
    checked, shown = cli("config", "check"), cli("config", "show", "--origin")

    assert checked.out == "✔ ok nightherd.yaml: 1 agent, 2 workflows\n"
    assert cli("config", "check", "--json").data["workflows"] == ["small", "build"]
    assert any(
        line.split() == ["workflows.build.limits.spend", "=", "5", "#", "workflows/build.yaml:4"]
        for line in shown.out.splitlines()
    )
    assert "workflows" not in cli("config", "show", "coder").out


def test_the_schema_of_workflow_files_is_printed(cli: Cli) -> None:
    data = cli("config", "schema", "workflow", "--json").data

    assert data["kind"] == "workflow"
    assert {"on", "phases"} <= data["json_schema"]["properties"].keys()


def test_a_command_about_an_agent_does_not_speak_of_workflows(project: Path, cli: Cli) -> None:
    (project / "workflows" / "build.yaml").write_text(f"on: {{chat: true}}\n{COMMAND}")

    assert "chat" not in cli("run", "coder", "-p", "x").err


COMMAND = "phases: [{name: a, bash: ls}]\n"


@pytest.mark.parametrize("name", [(), ("small",)])
def test_check_fails_where_the_fleet_file_cannot_be_read(
    project: Path, cli: Cli, name: tuple[str, ...]
) -> None:
    (project / "nightherd.yaml").write_text("agents: [\n")

    result = cli("workflow", "check", *name)

    assert result.code == 78
    assert "nightherd.yaml:2:1: not valid YAML" in result.out + result.err


@pytest.mark.parametrize(
    ("key", "file"), [("prompt_file: ../go.md", "go.md"), ("skill: go", "skills/go/SKILL.md")]
)
def test_check_fails_where_a_prompt_or_skill_is_not_text(
    project: Path, cli: Cli, key: str, file: str
) -> None:
    (project / file).parent.mkdir(parents=True, exist_ok=True)
    (project / file).write_bytes(b"go \xff")
    (project / "workflows" / "build.yaml").write_text(
        f"phases:\n- {{name: a, agent: coder, {key}}}\n"
    )

    for result in (cli("workflow", "check"), cli("workflow", "check", "build")):
        assert result.code == 78
        assert f"{file}:1:4: not UTF-8 text: byte 0xff" in result.out


def test_inputs_are_shown_with_their_defaults_as_json(project: Path, cli: Cli) -> None:
    (project / "workflows" / "build.yaml").write_text(
        "inputs:\n  b: {type: boolean, default: true}\n  t: text\n  l: {type: list, default: [a]}\n"
        "phases: [{name: a, bash: ls}]\n"
    )

    shown = [line for line in cli("workflow", "show", "build").out.splitlines() if "input" in line]

    assert shown == [
        "input       b (boolean, default true)",
        "input       t (text, optional)",
        'input       l (list, default ["a"])',
    ]
