"""The real `claude` in a container answers on Slack: it reads what people sent, and sends a file through the bridge."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from docker_engine import DockerEngine
from nightherd.engine.chat.attachment_folders import attachment_folder
from nightherd.model.chat.conversation import conversation_id
from nightherd.model.chat.platform import ChatPlace, Platform, bot_id
from nightherd.testing.messages_script import Answer, Call, Say
from nightherd.testing.slack_api import SlackApi
from nightherd.testing.slack_workspace import CHANNEL
from runtimes.claude.claude_stage import ClaudeStage
from runtimes.claude.test_claude_containers import Herd, bash, claude_program, serve

__all__ = ["claude_program"]
pytestmark = pytest.mark.timeout(240)


@pytest.mark.either_runtime
@pytest.mark.parametrize("mode", ["shared", "empty"])
def test_files_come_in_and_go_out(
    stage: ClaudeStage,
    docker_engine: DockerEngine,
    container_image: str,
    claude_program: str,
    mode: str,
) -> None:
    bot = bot_id(Platform.SLACK, "one")
    directory = str((stage.root / ".nightherd" / "chat").resolve())
    folder = attachment_folder(directory, conversation_id(bot, ChatPlace(channel_id=CHANNEL)))
    place = ".slack-attachments" if mode == "shared" else f"{folder}/.slack-attachments"
    is_named, read = threading.Event(), dict[str, Any]()
    answers: tuple[Answer, ...] = (
        Say(text="I look.", calls=(Call("Bash", {"command": "true"}),), hold=is_named),
        Say(calls=(Call("Read", read),)),
        bash(f"cat {place}/* | tr a-z A-Z > loud.txt"),
        Say(calls=(Call("mcp__nightherd__send_file", {"path": "/workspace/loud.txt"}),)),
        Say(text="All done."),
    )
    channels = [{"id": CHANNEL, "mode": "all", "context_messages": 0}]
    settings = {
        "working_directory": {"root": "work", "mode": mode},
        "permission_mode": "default",
        "allowed_tools": ["Bash"],
        "chat": {"slack": {"channels": channels, "attachments": {"enabled": True}}},
    }
    with SlackApi() as slack, serve(docker_engine, *answers) as api:
        herd = Herd(stage, docker_engine, container_image, api, claude_program, **settings)
        fleet = json.loads((herd.root / "nightherd.yaml").read_text())
        del fleet["agents"][1]
        (herd.root / "nightherd.yaml").write_text(json.dumps(fleet))
        herd.environment |= slack.environment
        with herd.started("start"):
            assert slack.wait_for(lambda: slack.connections == 1)
            id = slack.say("make it loud", file=b"quiet words\n")
            shown = place if mode == "empty" else f"{stage.work}/{place}"
            read["file_path"] = f"{shown}/{id}-0-notes.txt"
            is_named.set()
            assert slack.wait_for(
                lambda: [one for one in slack.posted() if "All done." in one.text], 120
            ), herd.results()
            assert slack.wait_for(lambda: [one for one in slack.posted() if one.files])

    (file,) = [one for one in slack.workspace.files.values() if one.name == "loud.txt"]
    assert file.content == b"QUIET WORDS\n"
    assert "quiet words" in herd.results()[1], herd.results()
