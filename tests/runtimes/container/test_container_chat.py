"""Files of conversations and containers: those of people are seen inside, those of agents are sent from inside."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docker_engine import DockerEngine
from nightherd.testing.slack_api import SlackApi
from nightherd.testing.slack_workspace import CHANNEL
from runtimes.container.container_herd import ContainerHerd, bash
from runtimes.keeper.kept_worker import wait_until

pytestmark = pytest.mark.timeout(200)
LOUD = "cat {}/.slack-attachments/* | tr a-z A-Z > loud.txt"
LOOK = "shopt -s globstar dotglob; for file in {}/**; do [ -f $file ] && echo $file; done; true"
"""Names the files below a directory."""
OTHER = "of-another"
"""The folder of another conversation."""


@pytest.fixture
def slack() -> Iterator[SlackApi]:
    """A Slack on the loopback interface."""
    with SlackApi() as server:
        yield server


def send(path: str) -> dict[str, Any]:
    """The step that sends a file."""
    return {"tool": "mcp__nightherd__send_file", "input": {"path": path}}


def bot(*script: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An agent that answers in the channel, and gets files."""
    channels = [{"id": CHANNEL, "mode": "all", "context_messages": 0}]
    chat = {"slack": {"channels": channels, "attachments": {"enabled": True}}}
    return {"name": "player", "script": [*script, {"say": "Done."}], "chat": chat, **more}


def make_herd(
    root: Path, engine: DockerEngine, image: str, slack: SlackApi, agent: dict[str, Any]
) -> ContainerHerd:
    return ContainerHerd(root, engine, image, [agent], environment=slack.environment)


def answered(herd: ContainerHerd, slack: SlackApi, *names: str) -> dict[str, bytes]:
    """Send a file, wait for the answer and these files; what was sent back, by name."""
    with herd.started("start"):
        assert slack.wait_for(lambda: slack.connections == 1)
        slack.say("make it loud", file=b"quiet words\n")
        assert slack.wait_for(lambda: [one for one in slack.posted() if "Done." in one.text])
        assert slack.wait_for(lambda: posted(slack).issuperset(names)), herd.results()
        wait_until(lambda: fetched(herd) == set())
    files = slack.workspace.files.values()
    return {one.name: one.content for one in files if one.name in posted(slack)}


def fetched(herd: ContainerHerd) -> set[str]:
    """The directories of files of people: those in the agent's own, and of conversations."""
    names = {path.name for path in (herd.root / ".nightherd" / "chat").glob("attachments/*")}
    names.update(path.name for path in herd.work.glob(".slack-attachments"))
    return names - {OTHER}


def posted(slack: SlackApi) -> set[str]:
    """The names of the files that the bot has sent."""
    return {name for post in slack.posted() for name in post.files}


@pytest.mark.parametrize("runtime", ["scripted", "native"])
def test_file_is_sent_under_both_of_its_names(
    docker_engine: DockerEngine,
    container_image: str,
    tmp_path: Path,
    slack: SlackApi,
    runtime: str,
) -> None:
    steps = (
        bash(
            f"{LOUD.format('/workspace')}; cp loud.txt other.txt; echo out > /tmp/inside.txt; ln -s / /workspace/top"
        ),
        send("/workspace/loud.txt"),
        send(str(tmp_path / "work" / "other.txt")),
        send("/workspace/../nightherd.yaml"),
        send("/workspace/top/etc/passwd"),
        send("/tmp/inside.txt"),
    )
    agent = bot(*steps, runtime=runtime)
    herd = make_herd(tmp_path, docker_engine, container_image, slack, agent)

    sent = answered(herd, slack, "loud.txt", "other.txt")

    assert sent == {"loud.txt": b"QUIET WORDS\n", "other.txt": b"QUIET WORDS\n"}, herd.results()
    assert all("is outside of the workspace" in one for one in herd.results()[3:])


@pytest.mark.parametrize("mode", ["worktree", "copy", "empty"])
def test_job_with_a_directory_of_its_own_sees_the_files_of_its_conversation_and_no_others(
    docker_engine: DockerEngine, container_image: str, tmp_path: Path, slack: SlackApi, mode: str
) -> None:
    state = tmp_path / ".nightherd"
    steps = (
        bash(LOUD.format(state / "chat" / "attachments" / "*")),
        bash(LOOK.format(state)),
        bash("while read -r _ place _ how _; do echo $place $how; done < /proc/mounts"),
        send("/workspace/loud.txt"),
    )
    agent = bot(*steps, working_directory={"root": "work", "mode": mode, "keep": "always"})
    herd = make_herd(tmp_path, docker_engine, container_image, slack, agent)
    os.chown(herd.work, 0, 0)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], cwd=herd.work, check=True)
    other = state / "chat" / "attachments" / OTHER / ".slack-attachments"
    other.mkdir(parents=True)
    (other / "private.txt").write_text("private\n")

    sent = answered(herd, slack, "loud.txt")

    assert sent == {"loud.txt": b"QUIET WORDS\n"}, herd.results()
    (seen,) = herd.results()[1].splitlines()
    folder = Path(seen).parent.parent
    (mount,) = [line for line in herd.results()[2].splitlines() if line.startswith(f"{state}/chat")]
    assert (folder.parent, folder.name != other.parent.name) == (other.parent.parent, True)
    assert mount.startswith(f"{folder} ro,"), mount
    assert (other / "private.txt").exists()
    changes = herd.nightherd("jobs", "diff", "@last", "--json")
    assert "attachments" not in changes.stdout, changes.stdout
    assert "loud.txt" in json.dumps(json.loads(changes.stdout)), changes.stdout
    assert not (herd.work / "loud.txt").exists()


def test_files_are_there_in_the_new_container_of_a_rescued_job(
    docker_engine: DockerEngine, container_image: str, tmp_path: Path, slack: SlackApi
) -> None:
    held = "echo begun > begun; while [ ! -e go ]; do sleep 0.05; done"
    place = tmp_path / ".nightherd" / "chat" / "attachments" / "*"
    steps = bash(held), bash(LOUD.format(place)), send("loud.txt")
    agent = bot(*steps, working_directory={"root": "work", "mode": "empty"})
    herd = make_herd(tmp_path, docker_engine, container_image, slack, agent)
    with herd.started("start") as daemon:
        assert slack.wait_for(lambda: slack.connections == 1)
        slack.say("make it loud", file=b"quiet words\n")
        wait_until(lambda: bool(list(tmp_path.glob(".nightherd-workspaces/*/begun"))))
        daemon.kill()
        daemon.wait()
    (begun,) = tmp_path.glob(".nightherd-workspaces/*/begun")
    begun.with_name("go").touch()

    with herd.started("start"):
        assert slack.wait_for(lambda: posted(slack)), herd.results()
        wait_until(lambda: fetched(herd) == set())

    (file,) = [one for one in slack.workspace.files.values() if one.name == "loud.txt"]
    assert file.content == b"QUIET WORDS\n"
    first, second = herd.container_ids()
    assert first != second
