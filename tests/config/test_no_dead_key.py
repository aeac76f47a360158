"""INV-CONFIG: every key of the schema is read, or stands in the table of keys that are not active yet.

Read means: `resolve` really asked the checked settings for it, or `assemble` asked the document, while the
example that sets every key was loaded. Both are watched.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from config.folder import Folder
from nightherd.config import resolve
from nightherd.config.json_schema import schema_of
from nightherd.config.load import LoadedFleet
from nightherd.config.not_active import AGENT_KEYS, FLEET_KEYS, WORKFLOW_KEYS, Waiting, never
from nightherd.config.reference import keys_of
from nightherd.config.report import Findings
from nightherd.config.schema.agent import Agent as AgentSchema
from nightherd.config.schema.fleet import AgentReference, FleetReference, FleetSettings
from nightherd.config.schema.workflow import WorkflowFile
from nightherd.config.workflows.load import KnownNames, resolve_workflow
from nightherd.config.workflows.sources import WorkflowSource
from nightherd.files.yaml_nodes import MappingNode
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.runtimes import KNOWN_RUNTIMES

EVERY_KEY = Path(__file__).parent / "examples" / "every-key"
OLDER_NAMES = (
    "workspace",
    "docker.base_image",
    "schedules.*.expression",
    "schedules.*.workspace",
)
"""Gone before anything is checked: tests of the layers show what becomes of them."""


class Watched:
    """Stands in for a checked value and notes the path of whatever is asked of it."""

    def __init__(self, target: Any, path: str, asked: set[str]) -> None:
        object.__setattr__(self, "_state", (target, path, asked))

    @property  # type: ignore[misc] # what isinstance and match are to see
    def __class__(self) -> Any:
        return type(object.__getattribute__(self, "_state")[0])

    def __getattr__(self, name: str) -> Any:
        target, path, asked = object.__getattribute__(self, "_state")
        if name == "model_fields_set":
            return target.model_fields_set
        field = type(target).model_fields[name]
        here = ".".join(filter(None, (path, field.alias or name)))
        asked.add(here)
        return watched(getattr(target, name), here, asked)


def watched(value: Any, path: str, asked: set[str]) -> Any:
    if isinstance(value, BaseModel):
        return Watched(value, path, asked)
    if isinstance(value, tuple):
        return tuple(watched(inner, f"{path}[]", asked) for inner in value)
    if isinstance(value, dict):
        return {key: watched(inner, f"{path}.*", asked) for key, inner in value.items()}
    return value


@pytest.fixture(scope="module")
def everything() -> LoadedFleet:
    return load_fleet(EVERY_KEY, environ={}, cwd=EVERY_KEY)


def read_of_agents(loaded: LoadedFleet) -> set[str]:
    asked: set[str] = set()
    for section in loaded.agents.values():
        resolve.resolve_agent(
            watched(section.model, "", asked), fleet=(), home="/", runtimes=KNOWN_RUNTIMES
        )
    return {path.replace(".steps[]", "") for path in asked}


def read_of_fleet(loaded: LoadedFleet) -> set[str]:
    asked: set[str] = set()
    settings = watched(loaded.settings.model, "", asked)
    resolve.is_readable_version(settings)
    resolve.resolve_fleet(settings, [], file="", files=(), environment={}, dotenv={})
    return asked


def read_of_workflows(loaded: LoadedFleet) -> set[str]:
    asked: set[str] = set()
    for name, workflow in loaded.workflows.items():
        source = WorkflowSource(
            name=name, home=workflow.home, node=workflow.node, declared=workflow.node
        )
        known = KnownNames(agents={}, webhooks=None)
        file = watched(workflow.file, "", asked)
        resolve_workflow(source, file, workflow.node, findings=Findings(), known=known)
    return {path.replace("phases[].phases[]", "phases[]") for path in asked}


def keys_in(node: MappingNode, prefix: str = "") -> Iterator[str]:
    """Every dotted key that a document sets, lists and mappings by name written as in the schema."""
    for key, value in node:
        path = f"{prefix}{key}"
        yield path
        yield from keys_below(value, path)


def keys_below(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, MappingNode):
        yield from keys_in(value, f"{path}.")
        for _, inner in value:
            yield from keys_below(inner, f"{path}.*")
    for item in getattr(value, "items", ()):
        yield from keys_below(item, f"{path}[]")


def leaves(model: type[BaseModel]) -> set[str]:
    keys = keys_of(schema_of(model))
    return {key.path for key in keys if key.is_leaf and not key.path.startswith(OLDER_NAMES)}


def covers(waiting: Waiting, path: str) -> bool:
    return path == waiting.key or path.startswith((f"{waiting.key}.", f"{waiting.key}[]"))


def nodes_of(loaded: LoadedFleet, model: type[BaseModel]) -> list[MappingNode]:
    if model is WorkflowFile:
        return [workflow.node for workflow in loaded.workflows.values()]
    sections = loaded.agents.values() if model is AgentSchema else [loaded.settings]
    return [section.node for section in sections]


@pytest.mark.parametrize("model", [AgentSchema, FleetSettings, WorkflowFile])
def test_the_example_sets_every_key(everything: LoadedFleet, model: type[BaseModel]) -> None:
    said = {path for node in nodes_of(everything, model) for path in keys_in(node)}
    said |= {path.replace("phases[].phases[]", "phases[]") for path in said}

    assert sorted(leaves(model) - said) == []


@pytest.mark.parametrize("model", [AgentSchema, FleetSettings])
def test_every_key_is_read_or_waits_and_never_both(
    everything: LoadedFleet, model: type[BaseModel]
) -> None:
    is_agent = model is AgentSchema
    read = read_of_agents(everything) if is_agent else read_of_fleet(everything)
    table = AGENT_KEYS if is_agent else FLEET_KEYS
    rows = [row for row in table if not (row.values or row.is_used_by is not never)]

    dead = [
        path
        for path in leaves(model)
        if path not in read and not any(covers(row, path) for row in rows)
    ]
    both = [row.key for row in rows if any(covers(row, path) for path in read)]
    gone = [row.key for row in rows if not any(covers(row, path) for path in leaves(model))]

    assert read
    assert sorted(dead) == []
    assert both == []
    assert gone == []


def test_every_key_of_a_workflow_is_read(everything: LoadedFleet) -> None:
    read = read_of_workflows(everything)

    assert "phases[].gate.artifact.file" in read
    assert sorted(leaves(WorkflowFile) - read) == []
    # What waits is read too, so that its expressions are checked.
    assert [row.key for row in WORKFLOW_KEYS if row.key not in read] == []


def test_a_chat_that_starts_a_workflow_is_active(folder: Folder) -> None:
    folder.fleet("workflows: {w: {on: {chat: true}, phases: [{name: a, bash: ls}]}}\n")

    assert folder.notices() == []


def test_the_watch_sees_a_key_that_nothing_reads(everything: LoadedFleet) -> None:
    read = read_of_agents(everything)

    assert "session.mode" in read
    assert "script[].input.command" in read
    assert "docker.host_config" in read
    assert "work_source.labels.ready" in read
    assert "chat.nothing" not in read


def test_keys_that_name_other_files_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    original = MappingNode.get

    def get(self: MappingNode, key: str) -> Any:
        asked.add(key)
        return original(self, key)

    monkeypatch.setattr(MappingNode, "get", get)

    load_fleet(EVERY_KEY, environ={}, cwd=EVERY_KEY)

    wanted = {
        key.path for model in (AgentReference, FleetReference) for key in keys_of(schema_of(model))
    }
    assert wanted | {"defaults", "agents", "fleets"} <= asked


def test_rows_for_single_values_name_values_that_exist() -> None:
    keys = {key.path: key.takes for key in keys_of(schema_of(AgentSchema))}

    wrong = [
        f"{row.key}: {value}"
        for row in AGENT_KEYS
        for value in row.values
        if f"`{value}`" not in keys.get(row.key, "")
    ]

    assert wrong == []


def test_a_key_that_waits_says_so_once_at_its_place(folder: Folder) -> None:
    folder.write("agent.yaml", "name: a\nruntime: native\nplugins: []\nmodel: p:x\n")
    folder.fleet("""\
        agents:
          - path: agent.yaml
          - name: b
          - name: c
            runtime: native
            model: p:x
            setting_sources: []
        """)

    assert folder.errors() == []
    assert folder.notices() == [
        "nightherd.yaml:7:5 'setting_sources' is not active yet: running agents with Claude",
        "agent.yaml:3:1 'plugins' is not active yet: running agents with Claude",
    ]


@pytest.mark.parametrize(
    ("line", "notices"),
    [
        ("runtime: sdk", []),
        ("runtime: cli", []),
        ("{runtime: sdk, effort: high, max_budget_usd: 1, sandbox: {enabled: true}}", []),
        ("{runtime: cli, model: x, max_turns: 3, denied_tools: [Bash]}", []),
        ("{runtime: scripted, model: x, denied_tools: [Bash]}", []),
        ("{runtime: native, model: x, denied_tools: [Bash]}", []),
        (
            "{runtime: native, model: x, sandbox: {enabled: false}}",
            ["'sandbox' is not active yet: running agents with Claude"],
        ),
        ("session: {mode: per_channel}", []),
        ("session: {mode: persistent}", []),
        ("description: x", []),
    ],
)
def test_values_that_wait_say_so(folder: Folder, line: str, notices: list[str]) -> None:
    agent = f"name: a\n    {line}" if not line.startswith("{") else "{name: a, " + line[1:]
    folder.fleet(f"agents:\n  - {agent}\n")

    assert [one.split(" ", 1)[1] for one in folder.notices()] == notices
