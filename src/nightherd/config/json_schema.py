"""The JSON Schema of fleet, agent and workflow files, for editors, for `config schema` and for naming valid keys."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from nightherd.config.layers import ALIASES
from nightherd.config.schema import phase, phase_parts, workflow
from nightherd.config.schema.agent import AgentFile
from nightherd.config.schema.fleet import FleetFile
from nightherd.config.schema.types import Model
from nightherd.config.schema.workflow import WorkflowFile
from nightherd.config.schema.workspace import WorkflowDirectory

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FileKind = Literal["fleet", "agent", "workflow"]
TITLES = {
    "fleet": "nightherd fleet file",
    "agent": "nightherd agent file",
    "workflow": "nightherd workflow file",
}
MODELS = {"fleet": FleetFile, "agent": AgentFile, "workflow": WorkflowFile}
ONLY_FOR_MESSAGES = frozenset({"#/$defs/OtherStep", "#/$defs/UnknownHook", "#/$defs/OtherPhase"})
"""Models that exist to word a mistake; no correct file matches them."""
VARIABLE = {
    "description": "A value filled in from the environment: ${NAME} or ${NAME:-default}.",
    "type": "string",
    "pattern": r"\$\{[A-Za-z_]",
}
OF_AGENTS, OF_SCHEDULES = ("AgentSettings", "Agent", "AgentFile"), ("Schedule", "NamedSchedule")
OLDER_NAMES = {
    "workspace": (*OF_AGENTS, *OF_SCHEDULES),
    "base_image": ("FleetDocker",),
    "expression": OF_SCHEDULES,
}
"""The models that each older name belongs to."""

Schema = dict[str, Any]


def json_schema(kind: FileKind = "fleet", *, runtimes: Sequence[str] = ()) -> Schema:
    """The schema of a whole file, every property described. Variables may stand for any scalar, but in workflows.

    The key `runtime` takes the names of `runtimes`; any text without them.
    """
    schema = with_runtimes(schema_of(MODELS[kind]), runtimes)
    return {"$schema": DIALECT, **schema, "title": TITLES[kind]}


def with_runtimes(schema: Schema, names: Sequence[str]) -> Schema:
    """Return the schema with the names of runtimes wherever an agent names one."""
    result = dict(schema)
    properties = schema.get("properties", {})
    if names and "runtime" in properties:
        described = {key: properties["runtime"][key] for key in ("description", "default")}
        choices = [{"enum": list(names)}, {"$ref": "#/$defs/Variable"}]
        result["properties"] = {**properties, "runtime": {"anyOf": choices, **described}}
    if "$defs" in schema:
        result["$defs"] = {name: with_runtimes(one, names) for name, one in schema["$defs"].items()}
    return result


@functools.cache
def schema_of(model: type[BaseModel]) -> Schema:
    """The schema of what a model takes; not to be changed by the caller."""
    _, whole = models_json_schema([(model, "validation")])
    definitions: dict[str, Schema] = whole["$defs"]
    for name, schema in definitions.items():
        is_of_workflow = model is WorkflowFile or name in workflow_models()
        clean(schema, has_variables=not is_of_workflow)
        describe(schema, definitions)
    add_older_names(definitions)
    add_workflow_spellings(definitions)
    if "AgentReference" in definitions and "AgentSettings" in definitions:
        add_overrides(definitions["AgentReference"])
    for name in [ref.removeprefix("#/$defs/") for ref in ONLY_FOR_MESSAGES]:
        definitions.pop(name, None)
    if model is not WorkflowFile:
        definitions["Variable"] = VARIABLE
    root = definitions.pop(model.__name__)
    return {**root, "$defs": dict(sorted(definitions.items()))}


@functools.cache
def workflow_models() -> frozenset[str]:
    """The models of workflows: `${...}` is an expression there, which only some texts may hold."""
    return frozenset(
        one.__name__
        for module in (phase, phase_parts, workflow)
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Model)
    ) | {WorkflowDirectory.__name__}


def add_workflow_spellings(definitions: dict[str, Schema]) -> None:
    """`on` is `triggers`, and phases may stand by name, where their name is not said again."""
    for name in workflow_models() & definitions.keys():
        properties = definitions[name].get("properties", {})
        if "on" in properties:
            properties["triggers"] = {**properties["on"], "description": "Another name of on."}
        if "items" in properties.get("phases", {}):
            phases = properties["phases"]
            by_name = {"type": "object", "additionalProperties": phases["items"]}
            described = {"description": phases.pop("description")}
            properties["phases"] = {"anyOf": [phases, by_name], **described}
        if name.endswith("Phase") and "name" in properties:
            definitions[name]["required"].remove("name")


def clean(schema: Schema, *, has_variables: bool = True) -> None:
    """Drop what only says the key again, and let variables stand for scalars, at every depth."""
    schema.pop("title", None)
    schema.pop("discriminator", None)
    if "oneOf" in schema:
        branches = schema.pop("oneOf")
        schema["anyOf"] = [
            branch for branch in branches if branch.get("$ref") not in ONLY_FOR_MESSAGES
        ]
    for inner in parts(schema):
        clean(inner, has_variables=has_variables)
    if not has_variables:
        return
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            schema[key] = opened(schema[key])
    for name, prop in schema.get("properties", {}).items():
        schema["properties"][name] = opened(prop)


def describe(schema: Schema, definitions: dict[str, Schema]) -> None:
    """Say again at a property what its model says of itself: a reference alone leaves it out."""
    for prop in schema.get("properties", {}).values():
        if "description" not in prop and "$ref" in prop:
            prop["description"] = definitions[prop["$ref"].removeprefix("#/$defs/")]["description"]


def opened(schema: Schema) -> Schema:
    """The schema of a value, or a variable where that value is a number, a choice or a shaped text."""
    if not any(is_closed(one) for one in (schema, *schema.get("anyOf", ()))):
        return schema
    described: Schema = {key: schema[key] for key in ("description", "default") if key in schema}
    bare = {key: value for key, value in schema.items() if key not in described}
    branches = bare.pop("anyOf", None) or [bare]
    return {"anyOf": [*branches, {"$ref": "#/$defs/Variable"}], **described}


def is_closed(schema: Schema) -> bool:
    """Whether a text with a variable in it would not fit."""
    return (
        schema.get("type") in {"integer", "number", "boolean"}
        or "enum" in schema
        or "pattern" in schema
    )


def parts(schema: Schema) -> Iterator[Schema]:
    """The schemas directly inside this one."""
    for key in ("anyOf", "allOf", "prefixItems"):
        yield from schema.get(key, ())
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield schema[key]
    yield from schema.get("properties", {}).values()


def add_older_names(definitions: dict[str, Schema]) -> None:
    """The older name of a key takes what the key takes."""
    for _, old, new in ALIASES:
        for name, schema in definitions.items():
            properties = schema.get("properties", {})
            # Webhook triggers and the fleet itself have such keys too; only these models know the old name.
            if new in properties and old not in properties and knows(name, old):
                described = f"Older name of {new}."
                properties[old] = {**properties[new], "description": described}


def knows(model: str, old: str) -> bool:
    """Whether the model's files may use the older name."""
    return model in OLDER_NAMES[old]


def add_overrides(reference: Schema) -> None:
    """What an override may say is what an agent may say."""
    old = reference["properties"]["overrides"]
    reference["properties"]["overrides"] = {
        "anyOf": [{"$ref": "#/$defs/AgentSettings"}, {"type": "null"}],
        "default": None,
        "description": old["description"],
    }


def keys_at(schema: Schema, path: Iterable[str | int]) -> frozenset[str]:
    """The keys a mapping at `path` may have, whichever of several forms it takes."""
    found = [schema]
    for step in path:
        found = [inner for one in found for inner in children(schema, one, step)]
    return frozenset(
        key for one in found for form in forms(schema, one) for key in form.get("properties", {})
    )


def forms(root: Schema, schema: Schema) -> Iterator[Schema]:
    """The schema with references followed, one by one for each form it may take."""
    if "$ref" in schema:
        yield from forms(root, root["$defs"][schema["$ref"].removeprefix("#/$defs/")])
        return
    yield schema
    for branch in schema.get("anyOf", ()):
        yield from forms(root, branch)


def children(root: Schema, schema: Schema, step: str | int) -> Iterator[Schema]:
    """The schemas of what stands at `step` of a value."""
    for form in forms(root, schema):
        if isinstance(step, int):
            if isinstance(form.get("items"), dict):
                yield form["items"]
        elif step in form.get("properties", {}):
            yield form["properties"][step]
        elif isinstance(form.get("additionalProperties"), dict):
            yield form["additionalProperties"]
