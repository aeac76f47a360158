"""What has to be known to say which agent a phase of a run has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from nightherd.model.agents.agent import Agent
from nightherd.model.workflows.rows import PinnedWorkflow
from nightherd.ports import StateReader


class RunContext(Protocol):
    """What is needed to know the runs that jobs are phases of; a `FleetContext` has it."""

    @property
    def reader(self) -> StateReader:
        """The records."""

    @property
    def agents(self) -> Mapping[str, Agent]:
        """The agents of the fleet."""

    @property
    def pinned(self) -> dict[str, PinnedWorkflow]:
        """Pinned workflows that were read."""

    @property
    def home(self) -> str:
        """The directory of the fleet file."""


class RunLookup(msgspec.Struct, frozen=True, kw_only=True):
    """The same for one who only reads."""

    reader: StateReader
    agents: Mapping[str, Agent]
    home: str
    pinned: dict[str, PinnedWorkflow] = msgspec.field(default_factory=dict)
