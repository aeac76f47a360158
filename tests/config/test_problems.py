"""Mistakes: each found once, at its place, in plain words, all in one run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from config.folder import Folder
from nightherd.errors import ConfigInvalidError
from nightherd.model.problem import Severity

TEN_MISTAKES = """\
version: 1
fleet:
  nmae: garden
agents:
  - name: digger
    runtime: dockr
    job_timeout: 30
    max_turns: ten
    promt: dig
    session:
      mode: persistent
      auto_resume: yes
      mode: fresh_per_job
    schedules:
      nightly:
        type: cron
        cron: "61 0 * * *"
        prompt: ${UNSET}
  - name: ../escape
"""


def one_agent(folder: Folder, line: str) -> list[str]:
    """The errors of an agent that has this line, without file and line, which are always the same."""
    folder.fleet(f"agents:\n  - name: a\n    {line}\n")
    errors = folder.errors()
    assert all(error.startswith("nightherd.yaml:3:") for error in errors)
    return [error.removeprefix("nightherd.yaml:3:") for error in errors]


def test_ten_different_mistakes_are_ten_located_problems(folder: Folder) -> None:
    folder.fleet(TEN_MISTAKES)

    with pytest.raises(ConfigInvalidError) as caught:
        folder.load()

    assert caught.value.exit_code == 78
    assert len(caught.value.problems) == 10
    assert [folder.line(one) for one in caught.value.problems] == [
        "nightherd.yaml:3:3 unknown key 'nmae'",
        "nightherd.yaml:6:14 'dockr' is not one of sdk, cli, native, scripted",
        "nightherd.yaml:7:18 expected a duration such as 30m, got the number 30",
        "nightherd.yaml:8:16 expected a whole number, got the text 'ten'",
        "nightherd.yaml:9:5 unknown key 'promt'",
        "nightherd.yaml:12:20 expected true or false, got the text 'yes'",
        "nightherd.yaml:13:7 the key 'mode' is here twice",
        "nightherd.yaml:17:15 '61 0 * * *' is not a cron expression: bad minute",
        "nightherd.yaml:18:17 the variable UNSET is not set",
        "nightherd.yaml:19:11 '../escape' is not a name: letters, digits, '_' and '-',"
        " beginning with a letter or digit",
    ]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("max_turns: 1.5", ["16 expected a whole number, got the number 1.5"]),
        ("max_turns: true", ["16 expected a whole number, got true"]),
        ("max_turns: 0", ["16 expected at least 1, got the number 0"]),
        ("max_turns: [1]", ["16 expected a whole number, got a list"]),
        ("max_turns: 99999999999999999999", ["16 expected at most 1000000000000, got the number"]),
        ("model: 4", ["12 expected text, got the number 4"]),
        ("description: [a]", ["18 expected text, got a list"]),
        ("tools: Bash", ["12 expected a list, got the text 'Bash'"]),
        (
            "session: persistent",
            ["14 expected a mapping of keys to values, got the text 'persistent'"],
        ),
        ("mcp_servers: [a]", ["18 expected a mapping of keys to values, got a list"]),
        (
            "mcp_servers: {x: {}}",
            ["22 an MCP server has either 'command' or 'url'; this has neither"],
        ),
        ("mcp_servers: {x: {command: a, url: b}}", ["23 an MCP server has either"]),
        (
            "mcp_servers: {x: {url: b, type: stdio}}",
            ["31 an MCP server of type stdio needs 'command'"],
        ),
        ("job_timeout: soon", ["18 'soon' is not a duration"]),
        ("job_timeout: 0s", ["18 the duration must be greater than 0"]),
        ("max_budget_usd: -1", ["21 '-1' is negative"]),
        ("max_budget_usd: .inf", ["21 'inf' is not an amount in dollars"]),
        ("max_budget_usd: '1e999999'", ["21 '1e999999' is more than"]),
        ("docker: {memory: lots}", ["22 'lots' is not a size"]),
        ("docker: {volumes: [x]}", ["24 'x' is not a mount; write host:container"]),
        ("docker: {network: moon}", ["23 'moon' is not one of none, bridge, host"]),
        ("permission_mode: accept", ["22 'accept' is not one of default, acceptEdits"]),
        ("operation: manual", ["16 'manual' is not one of autonomous, review, interactive"]),
        ("setting_sources: [project, home]", ["32 'home' is not one of user, project, local"]),
        ("required_caps: [tool.Bash]", ["21 'tool.Bash' is not a capability"]),
        ("work_source: {type: github}", ["25 a github work source needs 'repo'"]),
        ("work_source: {type: github, repo: x}", ["39 'x' is not a repository"]),
        ("hooks: {after_run: [{type: shel, command: x}]}", ["32 'shel' is not one of shell"]),
        ("hooks: {after_run: [{command: x}]}", ["26 'type' is missing"]),
        ("hooks: {after_run: [{type: shell}]}", ["26 'command' is missing"]),
        ("hooks: {after_run: [x]}", ["25 expected a mapping of keys to values, got the text 'x'"]),
        ("limits: {spend: x}", ["21 'x' is not an amount in dollars"]),
        ("limits: {per_day: x}", ["23 'x' is not an amount in dollars"]),
        ("schedules: {x: {}}", ["20 a schedule needs 'type' with 'interval' or 'cron'"]),
        ("schedules: {x: {type: interval}}", ["21 a schedule of type interval needs 'interval'"]),
        ("schedules: {x: {type: interval, interval: bananas}}", ["47 'bananas' is not a duration"]),
        (
            "schedules: {x: {type: cron, interval: 5m}}",
            ["33 'interval' does not go with type cron"],
        ),
        (
            "schedules: {x: {cron: '@daily', trigger: {type: chat}}}",
            ["21 'trigger' and 'cron' both"],
        ),
        (
            "schedules: {x: {trigger: {type: interval}}}",
            ["31 a schedule of type interval needs 'every'"],
        ),
        (
            "schedules: {x: {cron: '@daily', timezone: Mars/Phobos}}",
            ["47 'Mars/Phobos' is not a time zone"],
        ),
        (
            "schedules: {x: {cron: '@daily', timezone: ../../etc}}",
            ["47 '../../etc' is not a time zone"],
        ),
        ("schedules: {'a b': {cron: '@daily'}}", ["17 'a b' is not a name"]),
        ("schedules: [{cron: '@daily'}]", ["17 a schedule in a list needs a 'name'"]),
        (
            "schedules: [{name: x, cron: '@daily', prompt: go}, {name: x, cron: '@daily'}]",
            ["63 a second schedule"],
        ),
        ("schedules: {x: {cron: '@daily', sesion: {}}}", ["37 unknown key 'sesion'"]),
        ("session: {mode: forever}", ["21 'forever' is not one of fresh_per_job, persistent"]),
        (
            "session: {max_context_tokens: lots, mod: x}",
            ["35 expected a whole number", "41 unknown key 'mod'"],
        ),
        ("chat: {discord: {channels: [{id: 5}]}}", ["38 expected text, got the number 5"]),
        (
            "chat: {discord: {channels: [{id: '5', mode: some}]}}",
            ["49 'some' is not one of mention"],
        ),
        ("script: [{say: x}, {sya: y}]", ["25 unknown key 'sya'"]),
        ("runtime: scripted", ["14 a scripted agent needs a 'script'"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_mistake_is_one_problem_in_plain_words(
    folder: Folder, line: str, found: list[str]
) -> None:
    errors = one_agent(folder, line)

    assert len(errors) == len(found), errors
    for error, beginning in zip(errors, found, strict=True):
        assert error.startswith(beginning)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("runtime: scriptd", "did you mean 'scripted'?"),
        ("modle: x", "did you mean 'model'?"),
        ("promt: x", "did you mean"),
        ("permission_mode: acceptedits", "did you mean 'acceptEdits'?"),
        ("session: {mod: x}", "did you mean 'mode'?"),
        ("schedules: {x: {cron: '@daily', promt: x}}", "did you mean 'prompt'?"),
        ("model: 4", 'put it in quotes: "4"'),
        ("session: {auto_resume: on}", "write true"),
        ("job_timeout: 30", "add a unit: 30s, 30m or 30h"),
        ("max_turns: '12'", "without quotes: 12"),
        ("zzzzzz: x", None),
    ],
)
def test_the_hint_says_what_was_probably_meant(folder: Folder, line: str, hint: str | None) -> None:
    folder.fleet(f"agents:\n  - name: a\n    {line}\n")

    found = folder.found()

    assert len(found) == 1
    assert found[0].hint == hint or (hint is not None and (found[0].hint or "").startswith(hint))


@pytest.mark.parametrize(
    ("word", "meant"), [("agnets", "agents"), ("default", "defaults"), ("flets", "fleets")]
)
def test_the_nearest_key_of_a_fleet_file_is_any_of_its_keys(
    folder: Folder, word: str, meant: str
) -> None:
    folder.fleet(f"{word}: x\n")

    assert [one.hint for one in folder.found()] == [f"did you mean '{meant}'?"]


def test_a_misspelt_key_is_not_also_reported_as_missing(folder: Folder) -> None:
    folder.fleet("agents:\n  - nmae: a\n")

    assert folder.errors() == ["nightherd.yaml:2:5 unknown key 'nmae'"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../x", "is not a name"),
        ("/etc/passwd", "is not a name"),
        ("a.b", "is not a name"),
        ("", "is not a name"),
        (".", "is not a name"),
        ("-flag", "is not a name"),
        ("a b", "is not a name"),
        ("nul\\0", "is not a name"),
        ("\N{LATIN SMALL LETTER E WITH ACUTE}", "is not a name"),
        ("x" * 300, "a name of 300 characters"),
    ],
    ids=["up", "absolute", "dot", "empty", "here", "flag", "space", "nul", "accent", "long"],
)
def test_names_that_could_leave_their_directory_are_refused(
    folder: Folder, name: str, message: str
) -> None:
    folder.fleet(f'agents:\n  - name: "{name}"\n')

    errors = folder.errors()

    assert len(errors) == 1
    assert errors[0].startswith("nightherd.yaml:2:11 ")
    assert message in errors[0]


def test_an_agent_without_a_name_and_things_that_are_no_agents_are_refused(folder: Folder) -> None:
    folder.fleet("agents:\n  - description: x\n  - coder\n  - [a]\n")

    assert folder.errors() == [
        "nightherd.yaml:2:5 'name' is missing",
        "nightherd.yaml:3:5 expected an agent, a mapping with 'name' or 'path', got the text 'coder'",
        "nightherd.yaml:4:5 expected an agent, a mapping with 'name' or 'path', got a list",
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("agents: coder\n", ["1:9 expected a list of agents, got the text 'coder'"]),
        ("defaults: [a]\n", ["1:11 expected a mapping of keys to values, got a list"]),
        ("fleets: {a: b}\n", ["1:9 expected a list of fleets, got a mapping"]),
        ("version: 2\n", ["1:10 this nightherd reads version 1 of fleet files"]),
        ("version: one\n", ["1:10 expected a whole number, got the text 'one'"]),
        ("agnets: []\n", ["1:1 unknown key 'agnets'"]),
        ("max_concurrent: ${UNSET}\n", ["1:17 the variable UNSET is not set"]),
        ("web: {port: 70000}\n", ["1:13 expected at most 65535, got the number 70000"]),
        ("durability: never\n", ["1:13 'never' is not one of process, checkpoint, fsync"]),
        ("agents: [{path: [x]}]\n", ["1:17 expected text, got a list"]),
        ("agents: [{path: x.yaml, override: {}}]\n", ["1:25 unknown key 'override'"]),
        (
            "agents: [{path: x.yaml, overrides: [a]}]\n",
            ["1:36 expected a mapping of keys to values"],
        ),
    ],
)
def test_the_fleet_file_itself_is_checked(folder: Folder, text: str, found: list[str]) -> None:
    errors = [one.removeprefix("nightherd.yaml:") for one in folder.fleet(text).errors()]

    assert len(errors) == len(found), errors
    for error, beginning in zip(errors, found, strict=True):
        assert error.startswith(beginning)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            "max_turns: 5\n    limits: {turns: 5}",
            "'max_turns' and 'limits.turns' set the same limit",
        ),
        (
            "session: {max_turns: 5}\n    limits: {turns: 5}",
            "'session.max_turns' and 'limits.turns'",
        ),
        ("max_budget_usd: 5\n    limits: {spend: 5}", "'max_budget_usd' and 'limits.spend'"),
    ],
)
def test_two_spellings_of_one_limit_are_an_error(folder: Folder, lines: str, message: str) -> None:
    errors = folder.fleet(f"agents:\n  - name: a\n    {lines}\n").errors()

    assert len(errors) == 1
    assert errors[0].startswith("nightherd.yaml:3:")
    assert message in errors[0]


def test_an_empty_fleet_is_a_fleet(folder: Folder) -> None:
    folder.fleet("version: 1\nagents:\nfleets: []\ndefaults: {}\n")

    loaded = folder.load()

    assert dict(loaded.fleet.agents) == {}
    assert loaded.notices == ()


def test_problems_carry_their_line_and_the_path_in_the_document(folder: Folder) -> None:
    folder.write("sub/nightherd.yaml", "agents:\n  - name: b\n    session: {mode: x}\n")
    folder.fleet(
        "agents:\n  - name: a\n    schedules: [{name: n, cron: x}]\nfleets: [{path: sub}]\n"
    )

    found = folder.found()

    assert [(one.path, one.text, one.width) for one in found] == [
        ("agents.a.schedules.n.cron", "    schedules: [{name: n, cron: x}]", 1),
        ("agents.sub.b.session.mode", "    session: {mode: x}", 1),
    ]


def test_an_older_name_is_shown_as_it_was_written(folder: Folder) -> None:
    folder.fleet(
        "agents: [{name: a, workspace: 'x'}, {name: b, workspace: {root: ., clone_depth: x}}]\n"
    )

    assert [one.path for one in folder.found()] == [
        "agents.a.workspace",
        "agents.b.workspace.clone_depth",
    ]


def test_no_message_speaks_of_the_library_underneath(folder: Folder) -> None:
    folder.fleet(TEN_MISTAKES)

    text = "\n".join(f"{one.message} {one.hint}" for one in folder.check().problems)

    assert not re.search(r"pydantic|Input should|valid (integer|string|dict)|https?:", text)


def test_a_thousand_mistakes_are_enough(folder: Folder) -> None:
    folder.fleet("".join(f"wrong{number}: 1\n" for number in range(5000)))

    assert len(folder.check().problems) == 1000


def test_a_check_gives_notices_after_errors_and_no_fleet(folder: Folder) -> None:
    folder.fleet("agents: [{name: a, runtime: native, plugins: [], tols: []}]\n")

    checked = folder.check()

    assert [one.severity for one in checked.problems] == [Severity.ERROR, Severity.NOTICE]
    assert checked.loaded is None
    assert checked.file == Path(folder.root / "nightherd.yaml")
