"""Showing a loaded fleet: every value as it counts, with the place it came from or `default`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from nightherd.config.layers import Section
from nightherd.config.merge import plain_value
from nightherd.config.report import printable, shown_file
from nightherd.config.schema.types import typed
from nightherd.config.wording import did_you_mean
from nightherd.config.working_directory import KEY as DIRECTORY
from nightherd.errors import AgentNotFoundError
from nightherd.files.yaml_nodes import MappingNode, Node, ScalarNode, SequenceNode, Spot
from nightherd.model.agents.agent import Agent
from nightherd.model.units import format_duration
from nightherd.model.workspaces.policy import WorkspacePolicy

if TYPE_CHECKING:
    from nightherd.config.load import LoadedFleet

DEFAULT = "default"
Shown = dict[str, Any]


def show(loaded: LoadedFleet, agent: str | None = None, *, origin: bool = True, cwd: Path) -> Shown:
    """The resolved settings as plain data: the fleet's own, all agents' and all workflows', or one agent's.

    With `origin` each value is `{"value": ..., "origin": "file:line" | "default"}`. A value that came out
    of the environment is shown as its variable.
    """
    view = View(cwd, origin=origin)
    if agent is not None and agent not in loaded.agents:
        raise AgentNotFoundError(
            f"the fleet has no agent called {agent!r}", hint=did_you_mean(agent, loaded.agents)
        )
    names = loaded.agents if agent is None else [agent]
    shown: Shown = {} if agent is not None else {"fleet": view.section(loaded.settings)}
    shown["agents"] = {
        name: agent_data(loaded.fleet.agents[name], loaded.agents[name], view) for name in names
    }
    if agent is None and loaded.workflows:
        shown["workflows"] = {
            name: view.model(workflow.file, workflow.node)
            for name, workflow in loaded.workflows.items()
        }
    return shown


def agent_data(agent: Agent, section: Section, view: View) -> Shown:
    """One agent's settings, its working directory also when nothing names one."""
    data = view.section(section)
    data.setdefault(DIRECTORY, view.leaf(agent.working_directory, None))
    complete_directory(data, agent.workspace, agent.working_directory, view)
    for key, schedule in agent.schedules.items():
        policy = schedule.workspace or agent.workspace
        root = schedule.working_directory or agent.working_directory
        complete_directory(data.get("schedules", {}).get(key, {}), policy, root, view)
    return data


def complete_directory(data: Shown, policy: WorkspacePolicy, root: str, view: View) -> None:
    """Add the defaults of a `working_directory` that depend on its other keys and on `repo`."""
    shown = data.get(DIRECTORY)
    if not isinstance(shown, dict) or "mode" not in shown:
        return
    defaults: dict[str, Any] = {"root": root}
    if not policy.is_shared:
        defaults |= {"scope": policy.scope.value, "keep": policy.keep.value}
    if policy.base is not None:
        defaults["base"] = policy.base
    for key, value in defaults.items():
        shown.setdefault(key, view.leaf(value, None))


class View:
    """Turns checked settings and the nodes they came from into plain data."""

    def __init__(self, cwd: Path, *, origin: bool) -> None:
        self.cwd = cwd
        self.origin = origin

    def section(self, section: Section) -> Shown:
        """A section's keys, in the order of the schema."""
        return self.model(section.model, section.node)

    def model(self, model: BaseModel, node: MappingNode | None) -> Shown:
        """What a model's keys hold; keys that nothing set and that have no default are left out."""
        shown: Shown = {}
        for name, field in type(model).model_fields.items():
            key = field.alias or name
            entry = None if node is None else node.entries.get(key)
            value = getattr(model, name)
            if entry is not None:
                shown[key] = self.value(value, entry.value)
            elif value is not None:
                shown[key] = self.default(value)
        return shown

    def value(self, value: object, node: Node) -> Any:
        """A value that a file gives."""
        if isinstance(node, ScalarNode):
            text = node.shown if node.secret else typed(plain_value(node))
            return self.leaf(text, node.spot)
        if isinstance(node, SequenceNode):
            values = value if isinstance(value, tuple) else (None,) * len(node.items)
            return [self.value(inner, item) for inner, item in zip(values, node.items, strict=True)]
        if isinstance(value, BaseModel):
            return self.model(value, node)
        values_by_key = value if isinstance(value, dict) else {}
        return {key: self.value(values_by_key.get(key), inner) for key, inner in node}

    def default(self, value: object) -> Any:
        """A value that the schema gives."""
        if isinstance(value, BaseModel):
            return self.model(value, None)
        if isinstance(value, timedelta):
            return self.leaf(format_duration(value), None)
        return self.leaf(list(value) if isinstance(value, tuple) else value, None)

    def leaf(self, value: object, spot: Spot | None) -> Any:
        """A value with its origin, or alone; `spot` is None for a default."""
        if not self.origin:
            return value
        return {"value": value, "origin": DEFAULT if spot is None else self.place(spot)}

    def place(self, spot: Spot) -> str:
        """`file:line`."""
        return f"{shown_file(spot.source.path, self.cwd)}:{spot.line}"


def render_show(shown: Shown) -> str:
    """Shown data as lines of text, `key = value`, with the origin behind a `#` where there is one."""
    rows = list(flattened(shown, ""))
    width = min(60, max((len(text) for text, _ in rows), default=0))
    return "".join(
        f"{text.ljust(width)}  # {origin}\n" if origin else f"{text}\n" for text, origin in rows
    )


def flattened(data: object, path: str) -> Iterator[tuple[str, str | None]]:
    """Each leaf as `path = value`, and its origin."""
    if isinstance(data, Mapping) and set(data) == {"value", "origin"}:
        yield f"{path} = {spelled(data['value'])}", str(data["origin"])
    elif isinstance(data, Mapping):
        for key, inner in data.items():
            yield from flattened(inner, f"{path}.{printable(key)}" if path else printable(key))
    elif isinstance(data, list | tuple) and data and isinstance(data[0], Mapping | list):
        for index, inner in enumerate(data):
            yield from flattened(inner, f"{path}[{index}]")
    else:
        yield f"{path} = {spelled(data)}", None


def spelled(value: object) -> str:
    """A value on one line, as JSON spells it."""
    return json.dumps(value, ensure_ascii=False, default=str)
