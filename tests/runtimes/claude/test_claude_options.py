"""From the fleet file to what `claude` is started with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nightherd.model.agents.agent import Agent
from nightherd.model.ids import ExecutionId, JobId
from nightherd.model.journal.event import ErrorEvent
from nightherd.model.units import MicroUsd
from nightherd.ports import RuntimeFork, RuntimeRequest
from nightherd.runtimes.claude.capabilities import CLI, SDK
from nightherd.runtimes.claude.launch import InFile, Launch
from nightherd.runtimes.claude.new_input import user_message
from nightherd.runtimes.claude.opening import Opening, begin_anew, completed, opening_of
from nightherd.runtimes.claude.options import (
    ALWAYS,
    as_line,
    environment_of,
    launch_of,
    options_of,
)
from nightherd.runtimes.claude.runtime import Run, run_instead
from nightherd.wiring.fleets import load_fleet

FILES = Path("/files")
JOB = JobId("job-2025-03-04-abc123")


def agent_from(folder: Path, keys: str) -> Agent:
    (folder / "nightherd.yaml").write_text(f"agents:\n  - {{name: a, runtime: cli{keys}}}\n")
    return load_fleet(folder, environ={}, cwd=folder).fleet.agents["a"]


def words_of(agent: Agent, turns_left: int | None = None, **opening: Any) -> list[str]:
    launch = Launch(
        program="claude",
        directory="/w",
        execution="x",
        options=options_of(agent, Opening(text="go", **opening), turns_left=turns_left),
    )
    return launch.arguments(FILES)


def told(agent: Agent, **opening: Any) -> dict[str, str]:
    pairs = [word.partition("=") for word in words_of(agent, **opening) if word.startswith("--")]
    return {name.removeprefix("--"): value for name, _, value in pairs}


def files_of(agent: Agent) -> dict[str, str]:
    options = options_of(agent, Opening(text="go"), turns_left=None)
    given = [option.value for option in options if isinstance(option.value, InFile)]
    return {one.name: one.text for one in given if isinstance(one.text, str)}


def request(**more: Any) -> RuntimeRequest:
    agent = Agent(name="a", runtime=CLI, working_directory="/w")
    given = {"execution": ExecutionId(f"{JOB}.1"), "prompt": "mow the lawn", **more}
    return RuntimeRequest(job_id=JOB, agent=agent, **given)


def test_agent_of_which_nothing_is_said_edits_files_and_obeys_no_settings(tmp_path: Path) -> None:
    options = told(agent_from(tmp_path, ""))

    assert options["permission-mode"] == "acceptEdits"
    assert options["setting-sources"] == ""
    assert options.keys() == {
        "input-format",
        "output-format",
        "verbose",
        "include-partial-messages",
        "permission-mode",
        "setting-sources",
        "settings",
    }


@pytest.mark.parametrize(
    ("keys", "sources"),
    [
        (", working_directory: .", "project"),
        (", setting_sources: [user, local]", "user,local"),
        (", working_directory: ., setting_sources: []", ""),
    ],
)
def test_place_that_was_named_has_its_settings_obeyed(
    tmp_path: Path, keys: str, sources: str
) -> None:
    assert told(agent_from(tmp_path, keys))["setting-sources"] == sources


def test_everything_that_is_said_is_passed_on(tmp_path: Path) -> None:
    agent = agent_from(
        tmp_path,
        ", model: opus, permission_mode: dontAsk, tools: [Bash, Read], allowed_tools: [Bash(git *)],"
        " denied_tools: [Write, Edit], add_dirs: [/more, /yet], system_prompt: Be brief.",
    )

    given = words_of(agent, turns_left=4, resume="s-1")

    assert {
        "--model=opus",
        "--permission-mode=dontAsk",
        "--tools=Bash,Read",
        "--allowedTools=Bash(git *)",
        "--disallowedTools=Write,Edit",
        "--add-dir=/more",
        "--add-dir=/yet",
        "--resume=s-1",
        "--max-turns=4",
        "--system-prompt-file=/files/system-prompt",
    } <= set(given)
    assert agent.max_turns is None
    assert not any("brief" in word for word in given)


def test_no_tools_is_not_the_same_as_all_tools(tmp_path: Path) -> None:
    assert told(agent_from(tmp_path, ", tools: []"))["tools"] == ""
    assert "tools" not in told(agent_from(tmp_path, ""))


def test_value_that_looks_like_an_option_stays_a_value(tmp_path: Path) -> None:
    agent = agent_from(tmp_path, ', model: "--dangerously-skip-permissions"')

    given = words_of(agent)

    assert "--model=--dangerously-skip-permissions" in given
    assert "--dangerously-skip-permissions" not in given


def test_what_is_nobodys_business_goes_by_files(tmp_path: Path) -> None:
    agent = Agent(name="a", runtime=CLI, working_directory="/w", system_prompt="Be brief. ✓")
    launch = launch_of(replace(request(), agent=agent), Opening(text="go"), program="claude")

    launch.write_files(tmp_path)

    assert f"--system-prompt-file={tmp_path}/system-prompt" in launch.arguments(tmp_path)
    assert (tmp_path / "system-prompt").read_text(encoding="utf-8") == "Be brief. ✓"


def test_what_a_claude_agent_brings_along_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "plug").mkdir()
    agent = agent_from(
        tmp_path,
        ", fallback_model: haiku, effort: high, max_budget_usd: 1.5, plugins: [plug,"
        " {path: plug, skipMcpDiscovery: true}], agents: {critic: {description: d, prompt: p,"
        " tools: [Read], model: opus}}, sandbox: {enabled: true, autoAllowBashIfSandboxed: true,"
        " excludedCommands: [git], network: {allowLocalBinding: true}}",
    )

    given = words_of(agent)
    files = {name: json.loads(text) for name, text in files_of(agent).items()}

    assert {
        "--fallback-model=haiku",
        "--effort=high",
        "--max-budget-usd=1.500000",
        f"--plugin-dir={tmp_path / 'plug'}",
        f"--plugin-dir-no-mcp={tmp_path / 'plug'}",
        "--agents=/files/agents.json",
        "--settings=/files/settings.json",
    } <= set(given)
    assert files["settings.json"].pop("permissions")["deny"]
    assert files == {
        "agents.json": {
            "critic": {"description": "d", "prompt": "p", "tools": ["Read"], "model": "opus"}
        },
        "settings.json": {
            "sandbox": {
                "enabled": True,
                "autoAllowBashIfSandboxed": True,
                "excludedCommands": ["git"],
                "network": {"allowLocalBinding": True},
                "failIfUnavailable": True,
            }
        },
    }


def test_what_is_left_for_the_job_is_what_claude_may_spend() -> None:
    agent = Agent(
        name="a",
        runtime=CLI,
        working_directory="/w",
        max_budget_microusd=MicroUsd(2_000_000),
    )
    launches = [
        launch_of(replace(request(spend_left=left), agent=agent), Opening(text="go"), program="c")
        for left in (None, 1_250_000, 0)
    ]

    assert [
        [word for word in launch.arguments(FILES) if "budget" in word] for launch in launches
    ] == [
        ["--max-budget-usd=2.000000"],
        ["--max-budget-usd=1.250000"],
        ["--max-budget-usd=0.000001"],
    ]


@pytest.mark.parametrize(
    ("most", "left", "given"),
    [
        (None, None, []),
        (None, 3, ["--max-turns=3"]),
        (9, None, ["--max-turns=7"]),
        (9, 3, ["--max-turns=3"]),
        (4, 3, ["--max-turns=2"]),
        (9, 0, ["--max-turns=1"]),
    ],
)
def test_claude_takes_the_turns_that_are_left(
    most: int | None, left: int | None, given: list[str]
) -> None:
    agent = Agent(name="a", runtime=CLI, working_directory="/w", max_turns=most)
    asked = replace(request(turns_left=left, job_turns=2), agent=agent)

    launch = launch_of(asked, Opening(text="go"), program="c")

    assert [word for word in launch.arguments(FILES) if "turns" in word] == given


def test_fork_leaves_the_session_it_comes_from_alone() -> None:
    fork = RuntimeFork(runtime_session_id="s-1", at_uuid="u-2")
    opening = opening_of(request(fork=fork))
    agent = Agent(name="a", runtime=SDK, working_directory="/w")

    given = [option.word(FILES) for option in options_of(agent, opening, turns_left=None)]

    assert {"--resume=s-1", "--fork-session", "--resume-session-at=u-2"} <= set(given)
    assert opening.text == "mow the lawn"
    assert begin_anew(request(fork=fork)) is None, "nothing is run without what it was to know"


def test_fork_that_has_its_own_session_goes_on_in_that() -> None:
    fork = RuntimeFork(runtime_session_id="s-1")
    opening = opening_of(request(fork=fork, runtime_session_id="s-2"))

    assert (opening.resume, opening.is_fork) == ("s-2", False)


def test_claude_that_started_the_worker_leaves_no_trace_in_the_agents() -> None:
    given = {"CLAUDECODE": "1", "PATH": "/bin", "DISABLE_AUTOUPDATER": "0"}

    assert environment_of(given) == {**ALWAYS, "PATH": "/bin", "DISABLE_AUTOUPDATER": "0"}
    assert environment_of({}) == {**ALWAYS, "DISABLE_AUTOUPDATER": "1"}


def test_no_variable_of_the_worker_lets_claudes_supervisor_continue_our_sessions() -> None:
    given = {"CLAUDE_DISABLE_ADOPT": "", "CLAUDE_CODE_DISABLE_AGENT_VIEW": "0"}

    assert environment_of(given).items() >= ALWAYS.items()


@pytest.mark.parametrize("text", ["plain", "-x", "two\nlines", "\x00 \udcff ✓"])
def test_first_message_is_one_line_with_the_text_in_it(text: str) -> None:
    line = as_line(user_message(text))

    assert line.count(b"\n") == 1
    assert json.loads(line)["message"]["content"] == [{"type": "text", "text": text}]


def test_run_begins_with_the_prompt() -> None:
    opening = opening_of(request())

    assert (opening.text, opening.resume, opening.note) == ("mow the lawn", None, None)


def test_next_job_of_a_session_begins_with_its_prompt_too() -> None:
    asked = request(runtime_session_id="s-1")
    opening = completed(opening_of(asked), asked, None)

    assert (opening.text, opening.resume, opening.note) == ("mow the lawn", "s-1", None)
    assert begin_anew(asked) is not None


def test_job_with_progress_continues_without_its_prompt() -> None:
    asked = request(runtime_session_id="s-1", job_turns=2, is_continued=True)
    opening = completed(opening_of(asked), asked, None)

    assert opening.resume == "s-1"
    assert "mow the lawn" not in opening.text


def test_job_lost_before_its_first_turn_hears_its_prompt_and_that_it_was_lost() -> None:
    asked = request(runtime_session_id="s-1", is_continued=True)
    opening = completed(opening_of(asked), asked, None)

    assert "interrupted" in opening.text
    assert opening.text.endswith("mow the lawn")


def test_job_lost_before_it_had_a_session_begins_anew() -> None:
    opening = opening_of(request(is_continued=True))

    assert (opening.text, opening.note) == ("mow the lawn", None)


def test_run_that_cannot_resume_at_a_message_resumes_all_of_the_session() -> None:
    asked = request(runtime_session_id="s-1", is_continued=True)
    error = ErrorEvent(message="No message found", code="message_not_found")

    again = run_instead(asked, Run(opening_of(asked)), error)

    assert again is not None
    assert (again.opening.resume, again.may_leave_out) == ("s-1", False)
    assert run_instead(asked, again, error) is None, "it is tried once"
    fork = request(fork=RuntimeFork(runtime_session_id="s-1", at_uuid="u-2"))
    assert run_instead(fork, Run(opening_of(fork)), error) is None
