"""Capabilities that a runtime could not hold an agent to: found before anything runs.

Our own runtimes check every call. Claude is only given which tools and which servers there are, so it can be held
to tools by name and to servers as a whole.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from nightherd.config.layers import Draft
from nightherd.config.not_active import entries_at
from nightherd.config.report import Findings
from nightherd.config.resolve_chat import CHAT, schedule_type
from nightherd.config.resolve_fleet import resolve_web
from nightherd.config.schema.agent import Agent as AgentSchema
from nightherd.config.schema.fleet import FleetSettings
from nightherd.config.wording import did_you_mean
from nightherd.files.regular import open_regular
from nightherd.files.yaml_nodes import MappingNode, Node, SequenceNode, problem_at, text_of
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.runtime import RuntimeCapabilities
from nightherd.model.permissions.tool_rule import MCP, TOOL
from nightherd.model.problem import Problem, Severity
from nightherd.model.text import quote

CHECKED_KEYS = ("permission_mode", "tools", "denied_tools", "required_caps")
"""Keys that restrict an agent: one whose runtime does not obey them does not run."""
PERSON_KEYS = ("approvals", "questions", "operation")
"""Keys by which an agent waits for people: one whose runtime cannot wait for them does not run."""
ALONE = ("autonomous", "false")
"""What two of these keys say about an agent that waits for nobody."""


def unsupported_keys(
    node: MappingNode, path: str, runtime: RuntimeCapabilities
) -> Iterator[Problem]:
    """One problem for each key of an agent that its runtime does not obey, at its place.

    `Severity.BLOCKED` for a key that restricts the agent, a notice for `mcp_servers`.
    """
    unsupported = {} if runtime.checks_tools else dict.fromkeys(CHECKED_KEYS, Severity.BLOCKED)
    if not runtime.asks_people:
        unsupported |= {
            key: Severity.BLOCKED
            for key in PERSON_KEYS
            if key in node.entries and text_of(node.entries[key].value) not in ALONE
        }
    if not runtime.takes_servers:
        unsupported["mcp_servers"] = Severity.NOTICE
    for key, severity in unsupported.items():
        entry = node.entries.get(key)
        if entry is not None:
            message = f"runtime {runtime.name} does not support '{key}'"
            yield problem_at(entry.key, message, path=f"{path}.{key}", severity=severity)


def check_capabilities(agent: Agent, draft: Draft, findings: Findings) -> None:
    """Check that the runtime can enforce the capabilities of an agent whose single calls are not checked."""
    if agent.runtime.checks_every_call:
        return
    given = draft.node.get("required_caps")
    items: tuple[Node, ...] = given.items if isinstance(given, SequenceNode) else ()
    for item, capability in zip(items, agent.required_caps or (), strict=False):
        message = mistake_in(capability)
        if message is not None:
            findings.add(problem_at(item, message, path=f"{draft.path}.required_caps"))


def mistake_in(capability: str) -> str | None:
    """Why Claude cannot be held to the capability."""
    if capability.startswith(TOOL):
        name = capability.removeprefix(TOOL)
        if "*" in name and name != "*":
            return f"Claude is held to tools by name: write {TOOL}NAME, or {TOOL}* for all"
    if capability.startswith(MCP):
        server, _, tool = capability.removeprefix(MCP).partition(".")
        if server != "*" and ("*" in server or tool != "*"):
            return f"Claude is held to servers as a whole: write {MCP}SERVER.*"
    return None


def check_script(agent: Agent, draft: Draft, findings: Findings) -> None:
    """A script, or a model, is there if the runtime needs it; a script that is not played is reported."""
    can = agent.runtime
    runtime, script = draft.node.entries.get("runtime"), draft.node.entries.get("script")
    if can.needs_script and agent.script is None and runtime is not None:
        message = f"a {can.name} agent needs a 'script'"
        findings.add(problem_at(runtime.value, message, path=f"{draft.path}.runtime"))
    elif can.needs_model and agent.script is None and agent.model is None and runtime is not None:
        message = f"a {can.name} agent needs a 'model': write provider:name"
        findings.add(problem_at(runtime.value, message, path=f"{draft.path}.runtime"))
    elif not can.takes_script and agent.script is not None and script is not None:
        message = f"'script' is not used: the runtime is {can.name}"
        path = f"{draft.path}.script"
        findings.add(problem_at(script.key, message, path=path, severity=Severity.NOTICE))


def check_idempotent(agent: Agent, draft: Draft, findings: Findings) -> None:
    """Calls that were cut off are made again by runtimes that can do so."""
    entry = draft.node.entries.get("idempotent_tools")
    if entry is not None and agent.idempotent_tools and not agent.runtime.repeats_calls:
        runtime = agent.runtime.name
        message = f"'idempotent_tools' is not used: runtime {runtime} repeats no calls"
        path = f"{draft.path}.idempotent_tools"
        findings.add(problem_at(entry.key, message, path=path, severity=Severity.NOTICE))


def check_chat_schedules(
    agent: Agent, checked: AgentSchema, draft: Draft, findings: Findings
) -> None:
    """One schedule says what turns of conversations are like; a second one would do nothing."""
    section = draft.node.get("schedules")
    for key, schedule in (checked.schedules or {}).items():
        is_other = (schedule.name or key) != agent.chat_schedule
        if schedule_type(schedule) != CHAT or not schedule.enabled or not is_other:
            continue
        entry = section.entries.get(key) if isinstance(section, MappingNode) else None
        message = f"'{agent.chat_schedule}' is the agent's schedule of type chat already"
        hint = f"switch one of them off: schedules.{key}.enabled: false"
        place = entry.key if entry is not None else draft.declared
        path = f"{draft.path}.schedules.{key}"
        findings.add(problem_at(place, message, path=path, hint=hint))


LIMIT_HOOKS = ("limits.hooks[].directive",)
AGENT_HOOKS = (
    *LIMIT_HOOKS,
    "schedules.*.limits.hooks[].directive",
    "hooks.after_run[].directive",
    "hooks.on_error[].directive",
    "hooks.on_suspend[].directive",
    "hooks.on_cancel[].directive",
)


def check_submitted(
    node: MappingNode,
    keys: Collection[str],
    names: Collection[str],
    findings: Findings,
    *,
    path: str = "",
) -> None:
    """Every agent that `node` names at one of `keys` is among `names`, which are whole names."""
    for key in keys:
        for entry, dotted in entries_at(node, key):
            name = text_of(entry.value)
            if name is None or name in names:
                continue
            where = f"{path}.{dotted}" if path else dotted
            message = f"the fleet has no agent {quote(name)}"
            hint = did_you_mean(whole_name(name, names), sorted(names))
            findings.add(problem_at(entry.value, message, path=where, hint=hint))


def whole_name(name: str, names: Collection[str]) -> str:
    """The agent of a sub-fleet that has this for its own name, else the name itself."""
    return next((one for one in sorted(names) if one.endswith(f".{name}")), name)


ENDING = "_env"
"""How every key ends that names a variable which holds a secret."""


def secret_variables(documents: Iterable[Node], settings: FleetSettings) -> frozenset[str]:
    """Return the variables that the documents name, and the one of the API's token."""
    named = {name for document in documents for name in _named_in(document)}
    return frozenset({*named, resolve_web(settings.web).token_env})


def _named_in(node: Node) -> Iterator[str]:
    match node:
        case MappingNode():
            for entry in node.entries.values():
                name = text_of(entry.value)
                if entry.key.text.endswith(ENDING) and name:
                    yield name
                yield from _named_in(entry.value)
        case SequenceNode():
            for item in node.items:
                yield from _named_in(item)
        case _:
            pass


SETTINGS_FILES = {
    "project": (".claude/settings.json", ".mcp.json"),
    "local": (".claude/settings.local.json",),
}
"""By the source that has Claude read them. They can hold hooks, which run commands."""


def settings_files(agent: Agent) -> tuple[str, ...]:
    """The settings files in its working directories that the agent obeys, there or not."""
    if not agent.runtime.supports_setting_sources:
        return ()
    names = [name for source in agent.setting_sources for name in SETTINGS_FILES.get(source, ())]
    of_schedules = (one.working_directory for one in agent.schedules.values())
    directories = dict.fromkeys((agent.working_directory, *filter(None, of_schedules)))
    return tuple(f"{directory}/{name}" for directory in directories for name in names)


SETTINGS_LIMIT_BYTES = 16 * 1024 * 1024


def settings_fingerprints(agent: Agent) -> dict[str, str]:
    """What those say that are there, by their paths from the working directory.

    Agents can write them: one that is no file, or too large, has a fingerprint that nobody accepts for another.
    """
    found = {}
    for path in settings_files(agent):
        name = os.path.relpath(path, agent.working_directory)
        try:
            found[name] = _fingerprint(path)
        except FileNotFoundError:
            if _is_link(path):
                found[name] = "a link to nothing"  # here; in a container it may lead to a file
        except OSError as error:
            found[name] = f"error {error.errno}"
    return found


def _fingerprint(path: str) -> str:
    with open_regular(Path(path)) as file:
        content = file.read(SETTINGS_LIMIT_BYTES + 1)
    if len(content) > SETTINGS_LIMIT_BYTES:
        return "too large"
    return hashlib.sha256(content).hexdigest()[:32]


def _is_link(path: str) -> bool:
    """Whether the settings file, or the `.claude` it is in, is a link."""
    file = Path(path)
    return file.is_symlink() or (file.parent.name == ".claude" and file.parent.is_symlink())
