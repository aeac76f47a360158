"""What `claude` is started with: an agent as its command line, environment and first message.

Nothing that could be secret is among the arguments, which every user of the machine can read: the prompt
goes in by standard input and the system prompt by a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from nightherd.model.agent import Agent
from nightherd.ports import RuntimeRequest

PROGRAM = "claude"
STREAMING = (
    "-p",
    "--input-format=stream-json",
    "--output-format=stream-json",
    "--verbose",
    # Tells a long answer from a stalled one, and what each answer used in the end.
    "--include-partial-messages",
)
SYSTEM_PROMPT_FILE = "system-prompt"

NOT_INHERITED = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT")
"""What a Claude that started the worker says about itself; the agent's is another one."""
UNLESS_SAID = {"DISABLE_AUTOUPDATER": "1"}
"""An unattended run does not replace the program it is running."""


def arguments(
    agent: Agent, *, files: Path, resume: str | None, turns_left: int | None
) -> list[str]:
    """The arguments after the program. Each value is in one word with its name, so none is taken for an option."""
    return [
        *STREAMING,
        *(f"--{name}={value}" for name, value in _values(agent, files, resume, turns_left)),
    ]


def _values(
    agent: Agent, files: Path, resume: str | None, turns_left: int | None
) -> Iterator[tuple[str, str]]:
    yield "permission-mode", agent.permission_mode
    yield "setting-sources", ",".join(agent.setting_sources)
    if resume is not None:
        yield "resume", resume
    if agent.model is not None:
        yield "model", agent.model
    if turns_left is not None:
        yield "max-turns", str(turns_left)
    if agent.system_prompt is not None:
        yield "system-prompt-file", str(files / SYSTEM_PROMPT_FILE)
    if agent.tools is not None:
        yield "tools", ",".join(agent.tools)
    if agent.allowed_tools:
        yield "allowedTools", ",".join(agent.allowed_tools)
    if agent.denied_tools:
        yield "disallowedTools", ",".join(agent.denied_tools)
    for directory in agent.add_dirs:
        yield "add-dir", directory


def write_files(agent: Agent, files: Path) -> None:
    """Put what the arguments refer to into `files`, a directory that only its owner can enter."""
    if agent.system_prompt is not None:
        (files / SYSTEM_PROMPT_FILE).write_text(agent.system_prompt, encoding="utf-8")


def environment_of(request: RuntimeRequest) -> dict[str, str]:
    """The whole environment of the process."""
    given: Mapping[str, str] = request.environment
    kept = {name: value for name, value in given.items() if name not in NOT_INHERITED}
    return {**UNLESS_SAID, **kept}


def user_message(text: str) -> bytes:
    """The line that asks for `text`. Claude reads it as it is, whatever it begins with."""
    message = {
        "type": "user",
        "message": {"role": "user", "content": [{"type": "text", "text": text}]},
        "parent_tool_use_id": None,
        "session_id": "",
    }
    return json.dumps(message).encode() + b"\n"
