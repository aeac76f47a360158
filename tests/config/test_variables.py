"""Variables: filled in before anything is checked, found when unset, never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.folder import Folder
from nightherd.config.documents import parse_dotenv
from nightherd.config.report import render_problems
from nightherd.config.schema.agent import Agent as AgentSchema
from nightherd.config.show import render_show, show


def settings(folder: Folder, **environ: str) -> AgentSchema:
    model = folder.load(**environ).agents["a"].model
    assert isinstance(model, AgentSchema)
    return model


def test_numbers_choices_and_truths_can_come_from_the_environment(folder: Folder) -> None:
    folder.fleet("""\
        agents:
          - name: a
            max_turns: ${TURNS}
            permission_mode: ${MODE}
            work_source: {type: github, repo: "${REPO}"}
            docker:
              enabled: ${BOXED:-true}
              memory: ${MEMORY:-512m}
        """)

    agent = settings(folder, TURNS="12", MODE="plan", REPO="owner/name")

    assert agent.max_turns == 12
    assert agent.permission_mode == "plan"
    assert agent.work_source is not None
    assert agent.work_source.repo == "owner/name"
    assert agent.docker is not None
    assert agent.docker.enabled is True
    assert agent.docker.memory == 512 * 1024 * 1024


def test_a_text_from_the_environment_stays_text_where_text_is_meant(folder: Folder) -> None:
    folder.fleet("""\
        agents:
          - name: a
            description: ${PHONE}
            mcp_servers:
              x:
                command: c
                env:
                  TOKEN: "${TOKEN}"
                  OTHER: ${TOKEN}
        """)

    agent = settings(folder, PHONE="0123", TOKEN="12345678")

    assert agent.description == "0123"
    assert agent.mcp_servers is not None
    assert agent.mcp_servers["x"].env == {"TOKEN": "12345678", "OTHER": "12345678"}


def test_a_quoted_variable_is_text_and_no_number(folder: Folder) -> None:
    folder.fleet("agents: [{name: a, max_turns: '${N}'}]\n")

    assert folder.errors(N="5") == [
        "nightherd.yaml:1:31 expected a whole number, got what '${N}' holds"
    ]


def test_a_variable_without_quotes_in_braces_is_explained(folder: Folder) -> None:
    folder.fleet("agents: [{name: a, max_turns: ${N}}]\n")

    found = folder.found(N="5")

    assert len(found) == 1
    assert found[0].hint is not None
    assert "put ${...} in quotes" in found[0].hint


def test_a_default_is_used_when_the_variable_is_not_set_and_may_be_empty(folder: Folder) -> None:
    folder.fleet("agents: [{name: a, description: 'x${A:-}y${B:-z}'}]\n")

    assert folder.agent("a").description == "xyz"
    assert folder.agent("a", A="1", B="").description == "x1y"


def test_an_empty_unquoted_variable_is_as_good_as_no_value(folder: Folder) -> None:
    folder.fleet("agents:\n  - name: a\n    max_turns: ${N:-}\n")

    assert settings(folder).max_turns is None


def test_two_dollars_write_the_variable_itself(folder: Folder) -> None:
    folder.fleet("""\
        agents:
          - name: a
            description: "$${HOME} costs $5, ${UNCLOSED and $(pwd) and ${A%x}"
        """)

    assert folder.agent("a").description == "${HOME} costs $5, ${UNCLOSED and $(pwd) and ${A%x}"


def test_each_unset_variable_is_found_at_its_own_place(folder: Folder) -> None:
    folder.fleet("""\
        agents:
          - name: a
            description: "from ${ONE} to ${TWO}"
            default_prompt: |
              first line
              then ${THREE}
        """)

    assert folder.errors() == [
        "nightherd.yaml:3:24 the variable ONE is not set",
        "nightherd.yaml:3:34 the variable TWO is not set",
        "nightherd.yaml:6:12 the variable THREE is not set",
    ]


def test_a_value_nobody_knows_is_one_mistake_whatever_its_key_takes(folder: Folder) -> None:
    folder.fleet("""\
        agents:
          - name: "${WHO}"
            runtime: ${HOW}
            max_turns: ${MANY}
            job_timeout: ${LONG}x
            session: {mode: "${SHARED}", auto_resume: no}
        """)

    assert folder.errors() == [
        "nightherd.yaml:2:12 the variable WHO is not set",
        "nightherd.yaml:3:14 the variable HOW is not set",
        "nightherd.yaml:4:16 the variable MANY is not set",
        "nightherd.yaml:5:18 the variable LONG is not set",
        "nightherd.yaml:6:22 the variable SHARED is not set",
        "nightherd.yaml:6:47 expected true or false, got the text 'no'",
    ]


def test_a_variable_used_many_times_in_a_text_is_found_once(folder: Folder) -> None:
    folder.fleet("agents: [{name: a, description: '${X} ${X} ${X}'}]\n")

    assert folder.errors() == ["nightherd.yaml:1:34 the variable X is not set"]


def test_a_variable_that_is_not_text_is_refused(folder: Folder) -> None:
    folder.fleet("agents:\n  - name: a\n    description: ${X}\n")

    assert folder.errors(X=b"\xff".decode(errors="surrogateescape")) == [
        "nightherd.yaml:3:18 the variable X does not hold UTF-8 text"
    ]


def test_places_of_the_job_are_left_for_the_job(folder: Folder) -> None:
    folder.fleet("""\
        agents:
          - name: a
            runtime: scripted
            default_prompt: "do ${prompt} in ${repo} with ${inputs.key}"
            script:
              - say: turn ${turn}
              - tool: Write
                input: {file_path: "${turn}.txt", content: "${prompt} ${WHO}"}
        """)

    agent = folder.agent("a", WHO="me", prompt="never", turn="never")

    assert agent.default_prompt == "do ${prompt} in ${repo} with ${inputs.key}"
    assert agent.script is not None
    assert "'content': '${prompt} me'" in repr(agent.script)


@pytest.mark.parametrize("place", ["prompt", "turn", "repo", "inputs.x"])
def test_places_of_the_job_are_errors_elsewhere(folder: Folder, place: str) -> None:
    folder.fleet(f"agents: [{{name: a, model: '${{{place}}}'}}]\n")

    errors = folder.errors(prompt="x", turn="x", repo="x")

    assert errors == [
        f"nightherd.yaml:1:28 ${{{place}}} is a value of the job; only prompts and scripts can use it"
    ]


def test_a_place_of_the_job_takes_no_default(folder: Folder) -> None:
    folder.fleet("agents: [{name: a, default_prompt: '${prompt:-x}'}]\n")

    assert folder.errors() == [
        "nightherd.yaml:1:37 ${prompt} is a value of the job and takes no default"
    ]


def test_overrides_are_filled_in_and_checked_too(folder: Folder) -> None:
    folder.write("agent.yaml", "name: a\n")
    folder.fleet("""\
        agents:
          - path: agent.yaml
            overrides:
              max_turns: ${N}
              promt: x
        """)

    assert folder.errors(N="many") == [
        "nightherd.yaml:4:18 expected a whole number, got what '${N}' holds",
        "nightherd.yaml:5:7 unknown key 'promt'",
    ]


SECRET = "hunter2-swordfish"


@pytest.mark.parametrize(
    "line",
    [
        "max_turns: ${S}",
        "max_turns: 'x${S}'",
        "runtime: ${S}",
        "job_timeout: ${S}",
        "max_budget_usd: ${S}",
        "docker: {memory: '${S}', enabled: '${S}', volumes: ['${S}']}",
        "schedules: {x: {cron: '${S}', timezone: '${S}'}}",
        "working_directory: ${S}",
        "session: ${S}",
        "script: ${S}",
        "mcp_servers: ['${S}']",
        "required_caps: ['${S}']",
    ],
)
def test_what_a_variable_held_is_in_no_message(folder: Folder, line: str) -> None:
    folder.fleet(f"agents:\n  - name: a\n    {line}\n")

    problems = folder.check(S=SECRET).problems

    assert problems
    for form in ("text", "json", "github"):
        text = render_problems(problems, form, cwd=folder.root)
        assert SECRET not in text
        assert SECRET[:6] not in text
    assert "${S}" in render_problems(problems, cwd=folder.root)


def test_what_a_variable_held_is_not_shown_but_a_default_is(folder: Folder) -> None:
    folder.fleet("agents: [{name: a, model: 'x-${S}', description: '${T:-plain}'}]\n")

    loaded = folder.load(S=SECRET)
    text = render_show(show(loaded, cwd=folder.root))

    assert SECRET not in text
    assert 'agents.a.model = "x-${S}"' in text
    assert 'agents.a.description = "plain"' in text
    assert loaded.fleet.agents["a"].description == "plain"


def test_dotenv_beside_the_fleet_file_is_read_and_the_process_wins(folder: Folder) -> None:
    folder.write(".env", "A=from-file\nB=from-file\n")
    folder.fleet("agents: [{name: a, description: '${A} ${B}'}]\n")

    loaded = folder.load(B="from-process")

    assert loaded.fleet.agents["a"].description == "from-file from-process"
    assert loaded.fleet.environment == {"A": "from-file"}


def test_dotenv_beside_a_sub_fleet_counts_for_that_sub_fleet_alone(folder: Folder) -> None:
    folder.write(".env", "WHO=outer\nALSO=outer\n")
    folder.write("sub/.env", "WHO=inner\n")
    folder.write("sub/nightherd.yaml", "agents: [{name: b, description: '${WHO} ${ALSO}'}]\n")
    folder.fleet("agents: [{name: a, description: '${WHO}'}]\nfleets: [{path: sub}]\n")

    agents = folder.load().fleet.agents

    assert agents["a"].description == "outer"
    assert agents["sub.b"].description == "inner outer"


def test_dotenv_values_are_read_as_their_quotes_say() -> None:
    text = (
        "# comment\n\nPLAIN=a b # comment\nexport EXPORTED = x\nHASH=a#b\nEMPTY=\nNOTE=#x\n"
        'SINGLE=\'a # \\n ${X}\'  # comment\nDOUBLE="a\\n\\"b\\"\\\\"\nLINES="one\ntwo"\nLAST=z'
    )

    values, problems = parse_dotenv("/.env", text)

    assert problems == []
    assert values == {
        "PLAIN": "a b",
        "EXPORTED": "x",
        "HASH": "a#b",
        "EMPTY": "",
        "NOTE": "",
        "SINGLE": "a # \\n ${X}",
        "DOUBLE": 'a\n"b"\\',
        "LINES": "one\ntwo",
        "LAST": "z",
    }


def test_mistakes_in_dotenv_are_located_and_their_lines_not_quoted(folder: Folder) -> None:
    folder.write(".env", "GOOD=1\nnot an assignment\n  1BAD=2\nOPEN='secret\n")
    folder.fleet("agents: [{name: a}]\n")

    found = folder.found()

    assert [folder.line(one) for one in found] == [
        ".env:2:1 expected NAME=value",
        ".env:3:3 expected NAME=value",
        ".env:4:1 the quotes of this value do not end",
    ]
    assert [one.text for one in found] == [None, None, None]


def test_a_dotenv_that_cannot_be_read_is_a_problem(folder: Folder) -> None:
    (folder.root / ".env").mkdir()
    folder.fleet("agents: [{name: a}]\n")

    assert folder.errors() == [".env:1:1 the file cannot be read: it is a directory, not a file"]


def test_the_process_environment_itself_is_never_read(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTHERD_TEST_VARIABLE", "leaked")
    folder.fleet("agents: [{name: a, description: '${NIGHTHERD_TEST_VARIABLE:-kept out}'}]\n")

    assert folder.agent("a").description == "kept out"


def test_a_tilde_is_the_home_directory_of_the_environment_given(
    folder: Folder, tmp_path: Path
) -> None:
    (tmp_path / "place" / "work").mkdir(parents=True)
    folder.fleet("agents: [{name: a, working_directory: ~/work}]\n")

    agent = folder.agent("a", HOME=str(tmp_path / "place"))

    assert agent.working_directory == str(tmp_path / "place" / "work")
