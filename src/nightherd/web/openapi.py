"""The OpenAPI document: the paths as FastAPI describes them, and the documents that they answer with as msgspec does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from nightherd.web.documents import TypedSchema

COMPONENTS = "#/components/schemas/{name}"
JSON_VALUE = "JsonValue"
ANY_JSON: dict[str, Any] = {
    "title": JSON_VALUE,
    "description": "Any JSON value.",
    "anyOf": [
        {"type": "null"},
        {"type": "boolean"},
        {"type": "number"},
        {"type": "string"},
        {"type": "array", "items": {"$ref": COMPONENTS.format(name=JSON_VALUE)}},
        {
            "type": "object",
            "additionalProperties": {"$ref": COMPONENTS.format(name=JSON_VALUE)},
        },
    ],
}


def describe(app: FastAPI, routers: Sequence[APIRouter]) -> dict[str, Any]:
    """Return the OpenAPI document of the app, with the types that its routers answer with among its components."""
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    places = [place for router in routers for place in _typed_places(router)]
    types = list(dict.fromkeys(kind for _, schema in places for kind in schema.types.values()))
    schemas, components = msgspec.json.schema_components(types, ref_template=COMPONENTS)
    _require_what_is_always_written(components, types)
    made = dict(zip(types, map(_completed, schemas), strict=True))
    for (path, method, status, media), schema in places:
        answer = document["paths"][path][method]["responses"][status]["content"][media]
        answer["schema"] = _filled(schema, made)
    known = document["components"]["schemas"]
    for name, component in components.items():
        if name in known and set(known[name].get("enum", ())) != set(
            component.get("enum", (name,))
        ):
            raise ValueError(f"two different schemas are named {name}")
        known[name] = _completed(component)
    known[JSON_VALUE] = ANY_JSON
    document["components"]["schemas"] = dict(sorted(known.items()))
    return document


def _typed_places(router: APIRouter) -> Iterator[tuple[tuple[str, str, str, str], TypedSchema]]:
    """Yield where the document has a schema that a type says: path, method, status and media type."""
    for route in router.routes:
        if not isinstance(route, APIRoute) or not route.include_in_schema:
            continue
        for status, response in route.responses.items():
            for media, content in response.get("content", {}).items():
                schema = content.get("schema")
                if isinstance(schema, TypedSchema):
                    for method in route.methods or ():
                        yield (route.path_format, method.lower(), str(status), media), schema


def _filled(schema: TypedSchema, made: Mapping[Any, dict[str, Any]]) -> dict[str, Any]:
    if schema.is_whole:
        return made[schema.types["data"]]
    types = {name: made[kind] for name, kind in schema.types.items()}
    return {**schema, "properties": {**schema["properties"], **types}}


def _require_what_is_always_written(components: dict[str, Any], types: Sequence[Any]) -> None:
    """Require the fields of structs that are written whole: a default is no reason to leave a field out of an answer."""
    for struct in _structs(types):
        component = components[struct.__name__]
        if not struct.__struct_config__.omit_defaults:
            component["required"] = list(component["properties"])


def _structs(types: Sequence[Any]) -> set[type[msgspec.Struct]]:
    """Return every struct in the types, at any depth."""
    found: set[type[msgspec.Struct]] = set()
    seen: set[int] = set()
    waiting: list[Any] = list(msgspec.inspect.multi_type_info(types))
    while waiting:
        info = waiting.pop()
        if id(info) in seen:
            continue
        seen.add(id(info))
        if isinstance(info, msgspec.inspect.StructType):
            found.add(info.cls)
        if isinstance(info, msgspec.Struct):
            waiting += [getattr(info, name) for name in info.__struct_fields__]
        elif isinstance(info, list | tuple):
            waiting += info
    return found


def _completed(schema: Any) -> Any:
    """Return the schema with a name for what may be any JSON value, types of enumerations, and no defaults.

    A default says what a missing key means to a reader of requests; in answers it would make generated
    types claim that the key is there.
    """
    if isinstance(schema, list):
        return [_completed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name not in ("default", "required")}
    if not kept:
        return {"$ref": COMPONENTS.format(name=JSON_VALUE)}
    done = {name: _completed(value) for name, value in kept.items() if name != "properties"}
    if "properties" in schema:
        done["properties"] = {key: _completed(one) for key, one in schema["properties"].items()}
    if "required" in schema:
        done["required"] = sorted(schema["required"])
    if "enum" in schema and all(isinstance(value, str) for value in schema["enum"]):
        done["type"] = "string"
    if (
        schema.get("type") == "object"
        and not {"properties", "additionalProperties"} & schema.keys()
    ):
        done["additionalProperties"] = {"$ref": COMPONENTS.format(name=JSON_VALUE)}
    if schema.get("type") == "array" and not {"items", "prefixItems"} & schema.keys():
        done["items"] = {"$ref": COMPONENTS.format(name=JSON_VALUE)}
    return done


def as_json(document: Mapping[str, Any]) -> str:
    """Return the document as text: keys in order, the same bytes for the same API."""
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
