"""From the fleet file to what `claude` is started with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nightherd.config.load import load_fleet
from nightherd.model.agent import Agent, RuntimeName
from nightherd.model.ids import ExecutionId, JobId
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.opening import opening_of
from nightherd.runtimes.claude.options import (
    arguments,
    environment_of,
    user_message,
    write_files,
)

FILES = Path("/files")
JOB = JobId("job-2025-03-04-abc123")


def agent_from(folder: Path, keys: str) -> Agent:
    (folder / "nightherd.yaml").write_text(f"agents:\n  - {{name: a, runtime: cli{keys}}}\n")
    return load_fleet(folder, environ={}, cwd=folder).fleet.agents["a"]


def options_of(agent: Agent, **more: Any) -> dict[str, str]:
    given = arguments(agent, **{"files": FILES, "resume": None, "turns_left": None, **more})
    pairs = [word.partition("=") for word in given if word.startswith("--")]
    return {name.removeprefix("--"): value for name, _, value in pairs}


def request(**more: Any) -> RuntimeRequest:
    agent = Agent(name="a", runtime=RuntimeName.CLI, working_directory="/w")
    given = {"execution": ExecutionId(f"{JOB}.1"), "prompt": "mow the lawn", **more}
    return RuntimeRequest(job_id=JOB, agent=agent, **given)


def test_agent_of_which_nothing_is_said_edits_files_and_obeys_no_settings(tmp_path: Path) -> None:
    options = options_of(agent_from(tmp_path, ""))

    assert options["permission-mode"] == "acceptEdits"
    assert options["setting-sources"] == ""
    assert options.keys() == {
        "input-format",
        "output-format",
        "verbose",
        "include-partial-messages",
        "permission-mode",
        "setting-sources",
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
    assert options_of(agent_from(tmp_path, keys))["setting-sources"] == sources


def test_everything_that_is_said_is_passed_on(tmp_path: Path) -> None:
    agent = agent_from(
        tmp_path,
        ", model: opus, permission_mode: plan, tools: [Bash, Read], allowed_tools: [Bash(git *)],"
        " denied_tools: [Write, Edit], add_dirs: [/more, /yet], system_prompt: Be brief.",
    )

    given = arguments(agent, files=FILES, resume="s-1", turns_left=4)

    assert {
        "--model=opus",
        "--permission-mode=plan",
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
    assert options_of(agent_from(tmp_path, ", tools: []"))["tools"] == ""
    assert "tools" not in options_of(agent_from(tmp_path, ""))


def test_value_that_looks_like_an_option_stays_a_value(tmp_path: Path) -> None:
    agent = agent_from(tmp_path, ', model: "--dangerously-skip-permissions"')

    given = arguments(agent, files=FILES, resume=None, turns_left=None)

    assert "--model=--dangerously-skip-permissions" in given
    assert "--dangerously-skip-permissions" not in given


def test_system_prompt_goes_by_a_file(tmp_path: Path) -> None:
    agent = Agent(
        name="a", runtime=RuntimeName.CLI, working_directory="/w", system_prompt="Be brief. ✓"
    )

    write_files(agent, tmp_path)

    assert (tmp_path / "system-prompt").read_text(encoding="utf-8") == "Be brief. ✓"


def test_claude_that_started_the_worker_leaves_no_trace_in_the_agents() -> None:
    given = {"CLAUDECODE": "1", "PATH": "/bin", "DISABLE_AUTOUPDATER": "0"}

    assert environment_of(request(environment=given)) == {
        "PATH": "/bin",
        "DISABLE_AUTOUPDATER": "0",
    }
    assert environment_of(request()) == {"DISABLE_AUTOUPDATER": "1"}


@pytest.mark.parametrize("text", ["plain", "-x", "two\nlines", "\x00 \udcff ✓"])
def test_first_message_is_one_line_with_the_text_in_it(text: str) -> None:
    line = user_message(text)

    assert line.count(b"\n") == 1
    assert json.loads(line)["message"]["content"] == [{"type": "text", "text": text}]


def test_run_begins_with_the_prompt() -> None:
    opening = opening_of(request())

    assert (opening.text, opening.resume, opening.is_continuation) == ("mow the lawn", None, False)


def test_next_job_of_a_session_begins_with_its_prompt_too() -> None:
    opening = opening_of(request(runtime_session_id="s-1"))

    assert (opening.text, opening.resume, opening.is_continuation) == ("mow the lawn", "s-1", False)
    assert opening.may_begin_anew


def test_job_with_progress_goes_on_without_its_prompt() -> None:
    opening = opening_of(
        request(runtime_session_id="s-1", job_turns=2, execution=ExecutionId(f"{JOB}.2"))
    )

    assert (opening.resume, opening.is_continuation, opening.may_begin_anew) == ("s-1", True, False)
    assert "mow the lawn" not in opening.text


def test_job_lost_before_its_first_turn_hears_its_prompt_and_that_it_was_lost() -> None:
    opening = opening_of(request(runtime_session_id="s-1", execution=ExecutionId(f"{JOB}.3")))

    assert "interrupted" in opening.text
    assert opening.text.endswith("mow the lawn")


def test_job_lost_before_it_had_a_session_begins_anew() -> None:
    opening = opening_of(request(execution=ExecutionId(f"{JOB}.2")))

    assert (opening.text, opening.is_continuation) == ("mow the lawn", False)
