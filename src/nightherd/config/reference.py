"""The reference of keys, written from the schema: what the pages of `docs/formats` hold between their marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from nightherd.config.json_schema import Schema, forms, schema_of, with_runtimes
from nightherd.config.not_active import AGENT_KEYS, FLEET_KEYS, WORKFLOW_KEYS, Waiting
from nightherd.config.schema.agent import Agent
from nightherd.config.schema.fleet import AgentReference, FleetReference, FleetSettings
from nightherd.config.schema.workflow import WorkflowFile
from nightherd.model.agents.runtime import RuntimeCapabilities

REPEATED = (
    "schedules[]",
    "script[].steps[]",
    "phases.*",
    "phases[].phases[]",
    "phases[].phases.*",
    "triggers",
)
"""Where the same keys are described again: schedules in the list form, steps of a `repeat`, phases by name and in blocks."""
BEGIN, END = "<!-- keys: written from the schema -->", "<!-- end of keys -->"


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One key of the schema: its dotted path, `*` standing for any name and `[]` for any item."""

    path: str
    takes: str
    default: str
    description: str
    is_leaf: bool


def keys_of(schema: Schema) -> list[Key]:
    """Every key of a schema, parents before what is below them, each once.

    A key that several forms have takes what any of them takes.
    """
    found: dict[str, Key] = {}
    for key in walk(schema, schema, "", ()):
        if not key.path.startswith(REPEATED):
            before = found.get(key.path)
            found[key.path] = key if before is None else joined(before, key)
    return list(found.values())


def joined(first: Key, second: Key) -> Key:
    """One key out of two of the same path."""
    return replace(
        first,
        takes=", ".join(dict.fromkeys((*first.takes.split(", "), *second.takes.split(", ")))),
        description=" / ".join(
            dict.fromkeys((*first.description.split(" / "), second.description))
        ),
        is_leaf=first.is_leaf and second.is_leaf,
    )


def walk(root: Schema, schema: Schema, path: str, trail: tuple[str, ...]) -> Iterator[Key]:
    """The keys below `path`; a form that contains itself is entered once."""
    reference = schema.get("$ref")
    if reference is not None:
        if reference in trail:
            return
        trail = (*trail, reference)
        schema = root["$defs"][reference.removeprefix("#/$defs/")]
    for name, prop in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        below = list(walk(root, prop, here, trail))
        yield Key(
            path=here,
            takes=takes(root, prop),
            default=default_of(prop),
            description=prop["description"],
            is_leaf=not below,
        )
        yield from below
    for branch in schema.get("anyOf", ()):
        yield from walk(root, branch, path, trail)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from walk(root, schema["additionalProperties"], f"{path}.*", trail)
    if isinstance(schema.get("items"), dict):
        yield from walk(root, schema["items"], f"{path}[]", trail)


def takes(root: Schema, schema: Schema) -> str:
    """What a key takes, in a few words."""
    words: dict[str, None] = {}
    for form in forms(root, schema):
        if form.get("pattern", "").startswith(r"\$\{"):
            continue  # a variable may stand anywhere; that is said once, above the tables
        if "enum" in form or "const" in form:
            for choice in form.get("enum", [form.get("const")]):
                words[f"`{choice}`"] = None
        elif form.get("type") in NAMES:
            words[NAMES[form["type"]]] = None
    return ", ".join(words) or "anything"


NAMES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true, false",
    "array": "list",
    "object": "mapping",
}


def default_of(schema: Schema) -> str:
    """The default as YAML spells it; empty where there is none worth naming."""
    value = schema.get("default")
    if value in (None, "", [], {}) or isinstance(value, dict):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`"


def waiting_for(path: str, table: tuple[Waiting, ...]) -> Waiting | None:
    """The row that says a key and all below it is not active yet, if there is one."""
    return next((row for row in table if not row.values and row.key == path), None)


def not_yet(row: Waiting | None, runtimes: Sequence[RuntimeCapabilities]) -> str:
    """What the row means for agents of these runtimes, behind a key's description."""
    if row is None:
        return ""
    names = [f"`{runtime.name}`" for runtime in runtimes if not row.is_used_by(runtime)]
    if len(names) == len(runtimes):
        return " *Not active yet.*"
    return f" *Not active yet for runtime {', '.join(names)}.*"


def table_of(
    schema: Schema, waiting: tuple[Waiting, ...], runtimes: Sequence[RuntimeCapabilities] = ()
) -> str:
    """A table of keys in Markdown."""
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for key in keys_of(schema):
        row = waiting_for(key.path, waiting)
        cells = (f"`{key.path}`", key.takes, key.default, key.description + not_yet(row, runtimes))
        lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def reference(runtimes: Sequence[RuntimeCapabilities]) -> str:
    """The whole reference: the fleet file, entries that name other files, and agents of these runtimes."""
    agent = with_runtimes(schema_of(Agent), [runtime.name for runtime in runtimes])
    parts = [
        ("### The fleet file", table_of(schema_of(FleetSettings), FLEET_KEYS)),
        ("### An entry of `agents` that names a file", table_of(schema_of(AgentReference), ())),
        ("### An entry of `fleets`", table_of(schema_of(FleetReference), ())),
        (
            "### An agent, inline or in a file; `defaults` and `overrides`",
            table_of(agent, AGENT_KEYS, runtimes),
        ),
    ]
    return "\n".join(f"{title}\n\n{table}" for title, table in parts)


def workflow_reference() -> str:
    """The reference of a workflow, inline or in a file."""
    return table_of(schema_of(WorkflowFile), WORKFLOW_KEYS)


def updated(page: str, text: str) -> str:
    """The text of the page with the reference between its marks rewritten."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{text}\n{END}{after}"
