"""Fingerprints of Claude's settings files: an agent can write these, and put anything in their places."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from nightherd.config.checks import SETTINGS_LIMIT_BYTES, settings_fingerprints
from nightherd.model.agents.agent import Agent
from nightherd.runtimes.claude.capabilities import CLI

SETTINGS = ".claude/settings.json"


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    work = tmp_path / "work"
    (work / ".claude").mkdir(parents=True)
    return Agent(name="one", runtime=CLI, working_directory=str(work), setting_sources=("project",))


def place(agent: Agent, name: str = SETTINGS) -> Path:
    return Path(agent.working_directory) / name


def test_a_settings_file_has_another_fingerprint_when_it_changes(agent: Agent) -> None:
    assert settings_fingerprints(agent) == {}
    place(agent).write_text("{}")
    before = settings_fingerprints(agent)
    place(agent).write_text('{"hooks": {}}')

    assert before.keys() == settings_fingerprints(agent).keys() == {SETTINGS}
    assert before != settings_fingerprints(agent)


def test_a_pipe_or_a_device_is_not_read(agent: Agent) -> None:
    os.mkfifo(place(agent))
    place(agent, ".mcp.json").symlink_to("/dev/zero")

    assert settings_fingerprints(agent) == {
        SETTINGS: f"error {errno.EINVAL}",
        ".mcp.json": f"error {errno.EINVAL}",
    }


def test_a_file_that_is_too_large_is_not_read(agent: Agent) -> None:
    with place(agent).open("wb") as file:
        file.truncate(SETTINGS_LIMIT_BYTES + 1)

    assert settings_fingerprints(agent) == {SETTINGS: "too large"}


def test_a_link_to_nothing_is_something(agent: Agent) -> None:
    """What is nothing here may be a file where Claude runs: in a container."""
    place(agent, ".mcp.json").symlink_to("/no/such/file")
    place(agent, ".claude").rmdir()
    place(agent, ".claude").symlink_to("/no/such/directory")

    assert settings_fingerprints(agent) == {
        SETTINGS: "a link to nothing",
        ".mcp.json": "a link to nothing",
    }


def test_no_file_is_nothing_also_where_the_working_directory_is_a_link(
    agent: Agent, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(agent.working_directory)
    linked = Agent(
        name="one",
        runtime=CLI,
        working_directory=str(tmp_path / "link"),
        setting_sources=("project",),
    )

    assert settings_fingerprints(linked) == {}
