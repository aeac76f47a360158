"""The configuration as the API shows it: each value with the place it was written at, and what waits for a person."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from nightherd.model.config_value import ConfigValue, Layer
from nightherd.model.inbox.item import InboxQuery, ItemId, ItemKind
from nightherd.model.problem import Place, Problem
from nightherd.model.secrets import Secrets
from nightherd.views.fleet.status import ConfigProblemRow
from nightherd.views.schedules.rows import PlaceRow

if TYPE_CHECKING:
    from nightherd.ports import InboxReader

DEFAULT = "default"
"""The origin of a value that no file says."""
MOST_ITEMS = 100
"""Items about fleet files that are looked at; there is one for each file."""

ShowFile = Callable[[str], str]
"""How a file is named to people."""


class ConfigValueRow(TypedDict):
    """A resolved setting, and where it was written."""

    key: str
    value: Any
    origin: str
    file: str | None
    line: int | None
    column: int | None
    layer: Layer


class AcceptedRow(TypedDict):
    """Whether all that the files give agents is in effect, and what waits for a person."""

    is_accepted: bool
    pending: list[str]
    item_id: str | None


class ConfigDocument(TypedDict):
    """Resolved settings, and what is wrong with the files."""

    values: list[ConfigValueRow]
    is_cut: bool
    is_valid: bool
    problems: list[ConfigProblemRow]
    accepted: AcceptedRow


class AgentConfigDocument(ConfigDocument):
    """The resolved settings of one agent."""

    agent: str


class FleetConfigDocument(ConfigDocument):
    """The resolved settings of the fleet itself."""

    file: str
    files: list[str]


class ConfigView(msgspec.Struct, frozen=True, kw_only=True):
    """Resolved settings with all there is to say about them."""

    values: Sequence[ConfigValue]
    most: int
    """How many of them are shown."""
    is_valid: bool
    """Whether the values are what the files say now."""
    problems: Sequence[Problem]
    pending: Sequence[str]
    """What the files give agents that waits for a person, in words."""
    item_id: ItemId | None
    """The inbox item that asks about it."""


def pending_reload(reader: InboxReader, subject: str) -> ItemId | None:
    """The inbox item that asks about the fleet file `subject`; None when nothing is asked."""
    items = reader.list_items(InboxQuery(kind=ItemKind.RELOAD, limit=MOST_ITEMS))
    return next((item.id for item in items if item.subject == subject and item.is_pending), None)


def config_document(view: ConfigView, secrets: Secrets, show_file: ShowFile) -> ConfigDocument:
    """Settings as plain data; known secrets are masked."""
    return {
        "values": [value_row(one, secrets, show_file) for one in view.values[: view.most]],
        "is_cut": len(view.values) > view.most,
        "is_valid": view.is_valid,
        "problems": [problem_row(one, show_file) for one in view.problems],
        "accepted": {
            "is_accepted": not view.pending,
            "pending": [str(secrets.mask(text)) for text in view.pending],
            "item_id": view.item_id if view.pending else None,
        },
    }


def value_row(one: ConfigValue, secrets: Secrets, show_file: ShowFile) -> ConfigValueRow:
    """A setting as plain data."""
    place = place_row(one.place, show_file)
    return {
        "key": one.key,
        "value": secrets.mask(one.value),
        "origin": DEFAULT if place is None else f"{place['file']}:{place['line']}",
        "file": None if place is None else place["file"],
        "line": None if place is None else place["line"],
        "column": None if place is None else place["column"],
        "layer": one.layer,
    }


def place_row(place: Place | None, show_file: ShowFile) -> PlaceRow | None:
    """A place as plain data."""
    if place is None:
        return None
    return {"file": show_file(place.file), "line": place.line, "column": place.column}


def problem_row(problem: Problem, show_file: ShowFile) -> ConfigProblemRow:
    """A problem as plain data."""
    return {
        "file": show_file(problem.place.file),
        "line": problem.place.line,
        "column": problem.place.column,
        "severity": problem.severity.value,
        "message": problem.message,
        "path": problem.path,
        "hint": problem.hint,
    }


def problems_of_agent(problems: Iterable[Problem], name: str) -> list[Problem]:
    """The problems of one agent's settings, and those of the fleet that are errors."""
    own = (f"agents.{name}", f"agents.{name}.")
    return [
        one
        for one in problems
        if one.path == own[0]
        or one.path.startswith(own[1])
        or not one.path.startswith(("agents.", "workflows."))
    ]
