"""An agent and how its run begins, as options, settings, environment and first message of `claude`; the same for `cli` and `sdk`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nightherd.model.agents.agent import Agent
from nightherd.model.agents.mcp import InjectedMcpServerDef
from nightherd.model.permissions.permission import PermissionMode
from nightherd.model.permissions.protected import (
    CLAUDE_DIRECTORY,
    CLAUDE_ENTRIES,
    CLAUDE_SERVERS,
    ProtectedPaths,
    present_files,
)
from nightherd.model.units import PER_DOLLAR
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.claude.deferred import hook_settings
from nightherd.runtimes.claude.launch import InFile, Launch, Option
from nightherd.runtimes.claude.mcp import allowed_tools, mcp_environment, mcp_options, tools_of
from nightherd.runtimes.claude.new_input import takes_input
from nightherd.runtimes.claude.opening import Opening

STREAMING = (
    Option("input-format", "stream-json"),
    Option("output-format", "stream-json"),
    Option("verbose"),
    # Shows whether a long answer has stalled, and what each answer used in the end.
    Option("include-partial-messages"),
)
REPLAY = Option("replay-user-messages")
"""Has Claude say when it has read what it was told."""

MODES = {"delegate": "dontAsk", "manual": "default"}
"""Modes that not every version knows, and the name for the same that all of them do."""

NOT_INHERITED = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT")
"""What a Claude that started the worker says about itself; the agent's is another one."""
UNLESS_SAID = {"DISABLE_AUTOUPDATER": "1"}
"""An unattended run does not replace the program it is running."""
ALWAYS = {"CLAUDE_DISABLE_ADOPT": "1", "CLAUDE_CODE_DISABLE_AGENT_VIEW": "1"}
"""Claude's own supervisor must not continue a session of ours: a killed one would run twice at once."""


def launch_of(
    request: RuntimeRequest,
    opening: Opening,
    *,
    program: str | None,
    more_options: tuple[Option, ...] = (),
    more_environment: Mapping[str, str] | None = None,
    injected: Mapping[str, Mapping[str, Any]] | None = None,
) -> Launch:
    """How `claude` is started for the request; `more_...` is what only one of the runtimes needs.

    `injected` says how to reach each injected server, as an entry of an MCP configuration.
    """
    agent = request.agent
    return Launch(
        program=program,
        directory=agent.working_directory,
        execution=request.execution,
        secrets=request.known_secrets(),
        options=(
            *options_of(
                agent,
                opening,
                turns_left=_turns_left(request),
                spend_left=request.spend_left,
                injected=request.injected_servers,
                protected=request.protected,
            ),
            *mcp_options(agent, injected or {}),
            *((REPLAY,) if takes_input(request) else ()),
            *more_options,
        ),
        environment={
            **mcp_environment(request.injected_servers),
            **environment_of(request.environment),
            **(more_environment or {}),
        },
    )


def options_of(
    agent: Agent,
    opening: Opening,
    *,
    turns_left: int | None = None,
    spend_left: int | None = None,
    injected: Sequence[InjectedMcpServerDef] = (),
    protected: ProtectedPaths | None = None,
) -> tuple[Option, ...]:
    """The agent's options, and its session."""
    return (
        *STREAMING,
        *_session_options(opening),
        *_model_options(agent, turns_left),
        *_budget_options(agent, spend_left),
        *_tool_options(agent, injected),
        *_helper_options(agent),
        *_place_options(agent, protected, has_deferred=opening.deferred is not None),
    )


def _session_options(opening: Opening) -> Iterator[Option]:
    if opening.resume is not None:
        yield Option("resume", opening.resume)
    if opening.is_fork:
        yield Option("fork-session")
    if opening.at_uuid is not None:
        yield Option("resume-session-at", opening.at_uuid)


def _turns_left(request: RuntimeRequest) -> int | None:
    """What the agent's own maximum and the job's limit leave; the smaller of the two."""
    most = request.agent.max_turns
    own = None if most is None else most - request.job_turns
    given = [left for left in (own, request.turns_left) if left is not None]
    return max(1, min(given)) if given else None


def _model_options(agent: Agent, turns_left: int | None) -> Iterator[Option]:
    if agent.model is not None:
        yield Option("model", agent.model)
    if agent.fallback_model is not None:
        yield Option("fallback-model", agent.fallback_model)
    if agent.effort is not None:
        yield Option("effort", agent.effort)
    if agent.system_prompt is not None:
        yield Option("system-prompt-file", InFile("system-prompt", agent.system_prompt))
    if turns_left is not None:
        yield Option("max-turns", str(turns_left))


def _budget_options(agent: Agent, spend_left: int | None) -> Iterator[Option]:
    """Claude counts what this process spends, after every turn."""
    budget = agent.max_budget_microusd if spend_left is None else spend_left
    if budget is not None:
        yield Option("max-budget-usd", _dollars(max(budget, 1)))


def _tool_options(agent: Agent, injected: Sequence[InjectedMcpServerDef]) -> Iterator[Option]:
    yield Option("permission-mode", MODES.get(agent.permission_mode, agent.permission_mode))
    tools, allowed = tools_of(agent), allowed_tools(agent, injected)
    if tools is not None:
        yield Option("tools", ",".join(tools))
    if allowed:
        yield Option("allowedTools", ",".join(allowed))
    denied = (*agent.denied_tools, *denied_in_plan(agent, injected))
    if denied:
        yield Option("disallowedTools", ",".join(denied))
    if agent.questions:
        # Without somebody to ask, Claude does not offer its tool AskUserQuestion.
        yield Option("permission-prompt-tool", "stdio")


def _helper_options(agent: Agent) -> Iterator[Option]:
    if agent.subagents:
        described = {name: one.in_claudes_words() for name, one in agent.subagents.items()}
        yield Option("agents", InFile("agents.json", json.dumps(described)))
    for plugin in agent.plugins:
        name = "plugin-dir" if plugin.has_mcp_servers else "plugin-dir-no-mcp"
        yield Option(name, plugin.path)


def _place_options(
    agent: Agent, protected: ProtectedPaths | None, *, has_deferred: bool
) -> Iterator[Option]:
    yield Option("setting-sources", ",".join(agent.setting_sources))
    for directory in agent.add_dirs:
        yield Option("add-dir", directory)
    settings = settings_of(agent, protected)

    def with_hook(files: Path) -> str:
        return json.dumps({**settings, **hook_settings(files)})

    text = with_hook if has_deferred else json.dumps(settings)
    yield Option("settings", InFile("settings.json", text))


def environment_of(given: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of the process."""
    kept = {name: value for name, value in given.items() if name not in NOT_INHERITED}
    return {**UNLESS_SAID, **kept, **ALWAYS}


def unapproved(tool: str) -> str:
    """Say that a call needs approval which the agent's permissions do not give; nobody is asked about it."""
    return f"{tool} is not among what this agent may do, and nobody is asked about it"


def as_line(message: Mapping[str, Any]) -> bytes:
    """A message as Claude reads it."""
    return json.dumps(message).encode() + b"\n"


def _dollars(microusd: int) -> str:
    whole, rest = divmod(microusd, PER_DOLLAR)
    return f"{whole}.{rest:06d}"


CHANGING_TOOLS = ("Bash", "Write", "Edit", "NotebookEdit")
"""Tools of Claude's that can change something."""
_SPECIAL = re.compile(r"([\\\[\]*?!{}()])")
"""What means something else in a rule unless a backslash stands before it (seen with 2.1.325)."""


def settings_of(agent: Agent, protected: ProtectedPaths | None) -> dict[str, Any]:
    """How the agent's commands are confined, and what it may not change in any permission mode."""
    confined = {} if agent.sandbox is None else {"sandbox": sandbox_of(agent.sandbox, agent)}
    return {**confined, "permissions": {"deny": list(deny_rules(protected))}}


def sandbox_of(sandbox: Mapping[str, Any], agent: Agent) -> dict[str, Any]:
    """The sandbox. Where it cannot be had, Claude does not start; it approves no command in mode `plan`."""
    settings = {**sandbox, "failIfUnavailable": True} if sandbox.get("enabled") else dict(sandbox)
    if agent.permission_mode == PermissionMode.PLAN:
        settings["autoAllowBashIfSandboxed"] = False
    return settings


def denied_in_plan(agent: Agent, injected: Sequence[InjectedMcpServerDef]) -> tuple[str, ...]:
    """What settings files could approve in mode `plan`, where nothing is approved: rules that deny outrank them."""
    if agent.permission_mode != PermissionMode.PLAN or not agent.setting_sources:
        return ()
    servers = [*(server.name for server in agent.mcp_servers), *(one.name for one in injected)]
    return (*CHANGING_TOOLS, *(f"mcp__{name}" for name in servers))


def deny_rules(protected: ProtectedPaths | None) -> Iterator[str]:
    """Rules against changing protected files; Claude applies them to Write, Edit and NotebookEdit, and to file commands."""
    for entry in CLAUDE_ENTRIES:
        yield f"Edit(//**/{CLAUDE_DIRECTORY}/{entry})"
        if not entry.endswith(".json"):
            yield f"Edit(//**/{CLAUDE_DIRECTORY}/{entry}/**)"
    yield f"Edit(//**/{CLAUDE_SERVERS})"
    if protected is None:
        return
    for file in _named_twice(present_files(protected, os.path.isfile)):
        yield f"Edit(/{_escaped(file)})"
    for directory in _named_twice(protected.directories):
        yield f"Edit(/{_escaped(directory)}/**)"
        yield f"Edit(/{_escaped(directory)})"


def _named_twice(paths: tuple[str, ...]) -> dict[str, None]:
    """Each path as it is written, and with its links followed."""
    return dict.fromkeys(
        name for path in paths for name in (os.path.normpath(path), os.path.realpath(path))
    )


def _escaped(path: str) -> str:
    return _SPECIAL.sub(r"\\\1", path)
