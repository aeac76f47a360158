"""Where the values of a fleet were written: file, line, column and layer of each, and of each schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from nightherd.config.layers import Section
from nightherd.config.report import printable
from nightherd.config.show import View, agent_data
from nightherd.errors import AgentNotFoundError
from nightherd.files.yaml_nodes import MappingNode, Node, SequenceNode, Spot, place_of
from nightherd.model.agents.agent import WORKFLOW_PREFIX, Agent, Declared
from nightherd.model.config_value import ConfigValue, Layer
from nightherd.model.limits.limits import Limits
from nightherd.model.problem import Place

if TYPE_CHECKING:
    from nightherd.config.load import LoadedFleet

MOST_VALUES = 5_000
"""Values of one agent, or of the fleet itself, that are shown."""
LIMITS = "limits"


def fleet_values(loaded: LoadedFleet) -> list[ConfigValue]:
    """The fleet's own settings, the first `MOST_VALUES` and one more where there are more."""
    data = _PlacedView().section(loaded.settings)
    return list(islice(_flat(data, "", {}, Layer.FLEET), MOST_VALUES + 1))


def agent_values(loaded: LoadedFleet, name: str) -> list[ConfigValue]:
    """One agent's settings, the same way. `AgentNotFoundError` when the fleet has no such agent."""
    section = loaded.agents.get(name)
    if section is None:
        raise AgentNotFoundError(f"the fleet has no agent {name!r}")
    return _values_of(loaded.fleet.agents[name], section)


def _values_of(agent: Agent, section: Section) -> list[ConfigValue]:
    data = agent_data(agent, section, _PlacedView())
    values = _flat(data, "", _layers_of(section), Layer.AGENT)
    return list(islice(values, MOST_VALUES + 1))


def with_declared(
    agents: Mapping[str, Agent], sections: Sequence[tuple[Agent, Section]], settings: Section
) -> Mapping[str, Agent]:
    """Return the agents of a fleet so that each can say what its files said; `sections` has them as they are alone."""
    found = {**agents}
    for own, section in sections:
        agent = agents[own.name]
        written = _Written(agent, own.limits, section, settings)
        found[own.name] = replace(agent, declared=written.read)
    return found


class _Written:
    """What the files say of one agent. Worked out when it is first asked for: most commands never ask."""

    def __init__(self, agent: Agent, limits: Limits, section: Section, settings: Section) -> None:
        self._agent = agent
        self._limits = limits
        self._section = section
        self._settings = settings

    def read(self) -> Declared:
        return self._declared

    @cached_property
    def _declared(self) -> Declared:
        fleet = _PlacedView().section(self._settings).get(LIMITS, {})
        return Declared(
            values=tuple(_values_of(self._agent, self._section)),
            fleet=tuple(_flat(fleet, LIMITS, {}, Layer.FLEET)),
            own_limits=self._limits,
            agent=self._agent,
        )


def schedule_place(loaded: LoadedFleet, owner: str, name: str) -> Place | None:
    """Where a schedule of an agent, or of `workflow:NAME`, is declared; None when the files do not have it."""
    if owner.startswith(WORKFLOW_PREFIX):
        workflow = loaded.workflows.get(owner.removeprefix(WORKFLOW_PREFIX))
        triggers = None if workflow is None else workflow.node.get("on")
        schedules = triggers.get("schedules") if isinstance(triggers, MappingNode) else None
    else:
        section = loaded.agents.get(owner)
        schedules = None if section is None else section.node.get("schedules")
    entry = schedules.entries.get(name) if isinstance(schedules, MappingNode) else None
    return None if entry is None else place_of(entry.key.spot)


class _Leaf(msgspec.Struct, frozen=True):
    """A value and the node it was written at."""

    value: object
    spot: Spot | None


class _PlacedView(View):
    """Settings as plain data whose leaves know where they were written."""

    def __init__(self) -> None:
        super().__init__(Path(), origin=True)

    def leaf(self, value: object, spot: Spot | None) -> Any:
        """A value with its node."""
        return _Leaf(value, spot)

    def value(self, value: object, node: Node) -> Any:
        """A value that a file gives, an empty list or mapping too."""
        if isinstance(node, SequenceNode) and not node.items:
            return _Leaf([], node.spot)
        if isinstance(node, MappingNode) and not node.entries:
            return _Leaf({}, node.spot)
        return super().value(value, node)


Found = Mapping[int, Layer]
"""The layer of each spot, by the spot's identity: the same text may stand in several layers."""


def _layers_of(section: Section) -> Found:
    """The layer of every node of an agent. What another file says belongs to the layer that names the file."""
    known = {id(spot): layer for layer, node in section.layers for spot in _spots(node)}
    found: dict[int, Layer] = {}
    _note(section.node, Layer.AGENT, known, found)
    return found


def _note(node: Node, above: Layer, known: Found, found: dict[int, Layer]) -> None:
    layer = found[id(node.spot)] = known.get(id(node.spot), above)
    if isinstance(node, SequenceNode):
        for item in node.items:
            _note(item, layer, known, found)
    elif isinstance(node, MappingNode):
        for entry in node.entries.values():
            _note(entry.value, known.get(id(entry.key.spot), layer), known, found)


def _spots(node: Node) -> Iterator[Spot]:
    yield node.spot
    if isinstance(node, SequenceNode):
        for item in node.items:
            yield from _spots(item)
    elif isinstance(node, MappingNode):
        for entry in node.entries.values():
            yield entry.key.spot
            yield from _spots(entry.value)


def _flat(data: object, path: str, layers: Found, written: Layer) -> Iterator[ConfigValue]:
    """Each leaf with its path; one that is written and in none of `layers` is in the layer `written`."""
    if isinstance(data, _Leaf):
        spot = data.spot
        yield ConfigValue(
            key=path,
            value=_plain(data.value),
            place=None if spot is None else place_of(spot),
            layer=Layer.BUILT_IN if spot is None else layers.get(id(spot), written),
        )
    elif isinstance(data, Mapping):
        for key, inner in data.items():
            below = f"{path}.{printable(key)}" if path else printable(key)
            yield from _flat(inner, below, layers, written)
    elif isinstance(data, list | tuple):
        for index, inner in enumerate(data):
            yield from _flat(inner, f"{path}[{index}]", layers, written)


def _plain(value: object) -> Any:
    """A value as JSON has it."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in value]
    return str(value)
