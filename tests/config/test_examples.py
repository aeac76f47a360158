"""Example files: what other systems' users write loads as it is, and editors agree."""

from __future__ import annotations

import functools
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from nightherd.config.documents import decode
from nightherd.config.json_schema import DIALECT, FileKind, json_schema
from nightherd.config.load import LoadedFleet
from nightherd.config.merge import plain_value
from nightherd.config.reference import keys_of
from nightherd.config.schema.agent import Agent as AgentSchema
from nightherd.files.yaml_load import compose
from nightherd.files.yaml_nodes import MappingNode, Node, ScalarNode
from nightherd.model.problem import Problem
from nightherd.model.sessions.session import SessionMode
from nightherd.runtimes.claude.capabilities import CLI
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.runtimes import runtime_names

EXAMPLES = Path(__file__).parent / "examples"
FILES = sorted(
    file.relative_to(EXAMPLES).as_posix()
    for file in EXAMPLES.rglob("*.yaml")
    if file.name != "script.yaml"
)


def load(name: str, **environ: str) -> LoadedFleet:
    return load_fleet(EXAMPLES / name, environ=environ, cwd=EXAMPLES)


def data(node: Node) -> Any:
    """What an editor's YAML parser sees: variables not filled in, lists as lists."""
    if isinstance(node, ScalarNode):
        return plain_value(node)
    if isinstance(node, MappingNode):
        return {key: data(inner) for key, inner in node}
    return [data(item) for item in node.items]


def read(file: Path) -> Any:
    decoded = decode(str(file), file.read_bytes())
    assert not isinstance(decoded, Problem)
    node, problems = compose(*decoded)
    assert problems == []
    assert node is not None
    return data(node)


@functools.cache
def validator(kind: FileKind) -> jsonschema.Draft202012Validator:
    schema = json_schema(kind, runtimes=runtime_names())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_shapes_of_the_session_documentation_load() -> None:
    fleet = load("sessions", GITHUB_TOKEN="none").fleet

    modes = {name: agent.session_mode for name, agent in fleet.agents.items()}
    assert modes == {
        "stateless": SessionMode.FRESH_PER_JOB,
        "research": SessionMode.PERSISTENT,
        "support": SessionMode.PER_CHANNEL,
        "hybrid": SessionMode.PERSISTENT,
        "permissions": SessionMode.FRESH_PER_JOB,
    }
    assert fleet.agents["hybrid"].working_directory == str(EXAMPLES / "sessions/my-project")


def test_a_schedule_may_have_a_session_of_its_own() -> None:
    agent = load("sessions", GITHUB_TOKEN="none").agents["hybrid"].model
    assert isinstance(agent, AgentSchema)
    assert agent.schedules is not None

    assert agent.schedules["continuous"].session is None
    review = agent.schedules["fresh-review"].session

    assert review is not None
    assert review.mode == "fresh_per_job"
    assert agent.session.timeout == timedelta(hours=1)


def test_herdctl_files_load_unchanged() -> None:
    loaded = load("herdctl")
    keeper, writer = loaded.agents["keeper"].model, loaded.agents["writer"].model
    assert isinstance(keeper, AgentSchema)
    assert isinstance(writer, AgentSchema)

    assert loaded.fleet.agents["keeper"].runtime is CLI
    assert keeper.docker is not None
    assert (keeper.docker.image, keeper.docker.memory) == (
        "registry.example/claude:latest",
        1024**3,
    )
    assert keeper.allowed_tools == ("Read", "Write", "Edit", "Bash")
    assert (keeper.max_turns, writer.max_turns) == (50, 10)
    assert writer.docker is not None
    assert writer.docker.volumes == ("/srv/writing:/writing",)
    assert writer.docker.enabled is True
    assert writer.schedules is not None
    assert writer.schedules["nightly"].cron == "0 0 * * *"


@pytest.mark.parametrize("name", FILES)
def test_examples_agree_with_the_json_schema(name: str) -> None:
    kind: FileKind = "agent" if "/agents/" in name else "fleet"
    kind = "workflow" if "/workflows/" in name else kind

    errors = [
        f"{error.json_path}: {error.message}"
        for error in validator(kind).iter_errors(read(EXAMPLES / name))
    ]

    assert errors == []


@pytest.mark.parametrize(
    "fleet",
    [
        {"agents": [{"name": "a", "runtime": "dockr"}]},
        {"agents": [{"name": "a", "max_turns": "ten"}]},
        {"agents": [{"name": "a", "session": {"mod": "x"}}]},
        {"agents": [{"name": "a", "script": [{"sya": "x"}]}]},
        {"agents": [{"name": "a", "hooks": {"after_run": [{"type": "shell"}]}}]},
        {"defaults": {"name": "x"}},
        {"nosuch": 1},
        {"workflows": {"w": {"phases": [{"name": "a", "bash": "ls", "tries": 1}]}}},
        {"workflows": {"w": {"phases": [{"name": "a", "bash": "ls", "retries": "${N}"}]}}},
    ],
    ids=["choice", "number", "nested", "step", "hook", "defaults", "key", "phase", "expression"],
)
def test_the_json_schema_finds_mistakes(fleet: dict[str, Any]) -> None:
    assert not validator("fleet").is_valid(fleet)


@pytest.mark.parametrize("kind", ["fleet", "agent", "workflow"])
def test_every_property_of_the_json_schema_is_described(kind: FileKind) -> None:
    schema = json_schema(kind, runtimes=runtime_names())
    definitions = [("the file", schema), *schema["$defs"].items()]

    bare = [
        f"{name}.{key}"
        for name, definition in definitions
        for key, prop in definition.get("properties", {}).items()
        if not prop.get("description")
    ]

    assert schema["$schema"] == DIALECT
    assert len(definitions) > 10
    assert bare == []


def test_triggers_and_phases_of_workflows_have_two_spellings_in_an_editor() -> None:
    phases = [{"name": "a", "bash": "ls"}, {"name": "b", "phases": {"c": {"wait": "1h"}}}]

    for flow in (
        {"on": {"api": False}, "phases": phases},
        {"triggers": {"api": False}, "phases": {"a": {"bash": "ls"}}},
    ):
        assert validator("workflow").is_valid(flow)


def test_variables_may_stand_for_numbers_and_choices_in_an_editor() -> None:
    agent = {
        "name": "a",
        "max_turns": "${N}",
        "runtime": "${R:-sdk}",
        "docker": {"enabled": "${B}"},
    }

    assert validator("agent").is_valid(agent)


def test_agent_files_have_no_keys_that_open_a_container() -> None:
    fleet = {key.path for key in keys_of(json_schema("fleet"))}
    agent = {key.path for key in keys_of(json_schema("agent"))}

    assert "defaults.docker.host_config" in fleet
    assert "docker.pids_limit" in agent
    assert not [path for path in agent if path.startswith("docker.host_config")]
