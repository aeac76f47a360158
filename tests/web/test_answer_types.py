"""Every answer has a type in the API's description, and real answers are exactly of those types."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema import Draft202012Validator

from components import Components
from nightherd.web.openapi import JSON_VALUE
from nightherd.web.server import make_api
from waiting_fleet import WAITING_AGENTS
from web.web_world import FLEET, World, served, write_fleet
from workflow_fleet import work
from workspace_fleet import WORKSPACE_AGENTS, make_project

WORKFLOWS = """\
workflows:
  flow:
    inputs: {word: {default: cow}}
    on: {schedules: {nightly: {cron: "0 4 * * *"}}}
    phases:
      - {name: list, bash: "echo '[1, 2]'", output: {type: array}}
      - name: each
        for_each: {items: phases.list.output}
        agent: hello
        prompt: "${item}"
      - {name: ask, gate: {summary: "Say ${inputs.word}?", artifact: {phase: list}}}
      - {name: rest, wait: {event: deployed}}
"""
STREAMS = {"/v1/stream"}
"""Paths that answer with nothing but a stream."""
FILES = {
    "/v1/jobs/{job}/events/{seq}/body",
    "/v1/blobs/{sha256}",
    "/metrics",
    "/v1/jobs/{job}/export",
    "/v1/sessions/{session}/export",
}
"""Paths that answer with something else than JSON."""


def the_fleet() -> str:
    """One fleet with agents of every kind."""
    agents = [text.split("agents:\n", 1)[1] for text in (WAITING_AGENTS, WORKSPACE_AGENTS)]
    return FLEET + "".join(agents) + WORKFLOWS


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return make_api("1").openapi()


def parts(schema: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Every schema in a schema, with its place."""
    yield where, schema
    if not isinstance(schema, dict):
        return
    for key, value in schema.get("properties", {}).items():
        yield from parts(value, f"{where}.{key}")
    for word in ("items", "additionalProperties"):
        if word in schema and schema[word] is not False:
            yield from parts(schema[word], f"{where}[{word}]")
    for word in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for number, one in enumerate(schema.get(word, ())):
            yield from parts(one, f"{where}|{number}")


def test_no_answer_is_unknown(description: dict[str, Any]) -> None:
    known = description["components"]["schemas"]
    found = [
        (f"{method} {path} {status} {media}", content["schema"])
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
        for status, response in operation["responses"].items()
        for media, content in response.get("content", {}).items()
    ] + [(name, schema) for name, schema in known.items() if name != JSON_VALUE]

    unknown = [
        place
        for name, schema in found
        for place, part in parts(schema, name)
        if part is True or not part.keys() & {"type", "$ref", "anyOf", "oneOf", "enum", "const"}
    ]
    shapeless = [
        place
        for name, schema in found
        for place, part in parts(schema, name)
        if part.get("type") == "object"
        and not part.keys() & {"properties", "additionalProperties", "patternProperties"}
    ]
    references = {
        part["$ref"].rpartition("/")[2]
        for name, schema in found
        for _, part in parts(schema, name)
        if "$ref" in part
    }

    assert unknown == []
    assert shapeless == []
    assert references <= known.keys()


def test_the_description_is_printed_without_a_server_and_always_the_same() -> None:
    command = [sys.executable, "-m", "nightherd.web.print_openapi"]
    first, second = (
        subprocess.run(command, capture_output=True, check=True, env={"PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    )

    assert first.stdout == second.stdout
    assert json.loads(first.stdout)["openapi"].startswith("3.1")


def closed(description: dict[str, Any]) -> dict[str, Any]:
    """The description, in which an object has no other keys than those that are named."""
    schemas = json.loads(json.dumps(description))
    stack = [schemas]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            if isinstance(value.get("properties"), dict) and value.get("type") == "object":
                value.setdefault("additionalProperties", False)
            stack += value.values()
        elif isinstance(value, list):
            stack += value
    return dict(schemas)


async def fill(world: World) -> dict[str, str]:
    """Jobs, sessions, runs, items and workspaces of many kinds; returns what each part of a path stands for."""
    for agent in ("broken", "capped", "asker", "pusher", "chatty", "coder", "hello"):
        await world.submit(agent, "go")
    made = await world.post("/v1/workflows/flow/runs", {"inputs": {"word": "pig"}})
    assert made.status == 201, made.body
    await work(world.site.fleet(), world.site.context)
    await world.submit("slow")
    coded = (await world.get("/v1/jobs?agent=coder")).data[0]["id"]
    item = (await world.get("/v1/inbox?kind=approval&agent=pusher")).data[0]["id"]
    session = (await world.get(f"/v1/jobs/{coded}")).data["session_id"]
    capped = (await world.get("/v1/jobs?agent=capped")).data[0]["id"]
    return {
        "name": "hello",
        "agent": "hello",
        "job": coded,
        "item": item,
        "session": "@last",
        "other": session,
        "number": "1",
        "capped": capped,
        "workspace": coded,
        "workflow": "flow",
        "run": "@last",
        "phase": "list",
    }


QUERIES = {
    "/v1/jobs": ["?limit=3", "?agent=broken", "?agent=capped"],
    "/v1/jobs/{job}/events": ["?bodies=short", "?before=5"],
    "/v1/jobs/{job}/diff": ["?patch=false"],
    "/v1/inbox": ["?limit=2", "?status=decided"],
    "/v1/runs/{run}/events": ["?limit=500"],
    "/v1/sessions": ["?q=agent:hello", "?mode=persistent"],
    "/v1/sessions/{session}/messages": ["?after=1", "?before=2&limit=1"],
}
"""More ways to ask than without anything."""
INSTEAD = {
    "/v1/schedules/{agent}/{name}": "/v1/schedules/hello/nightly",
    "/v1/hooks/{name}/deliveries": "/v1/hooks/issues/deliveries",
    "/v1/search": "/v1/search?q=hello",
    "/v1/jobs/{job}/checkpoints/{number}": "/v1/jobs/{capped}/checkpoints/1",
    "/v1/sessions/{session}/messages/{number}": "/v1/sessions/{other}/messages/2",
    "/v1/sessions/{session}/compare/{other}": "/v1/sessions/{other}/compare/@last?patch=true",
}


def test_real_answers_are_exactly_as_they_are_described(
    tmp_path: Path, components: Components, description: dict[str, Any]
) -> None:
    components.program("git")
    project = make_project(tmp_path)
    strict = closed(description)
    wrong: list[str] = []

    def check(path: str, asked: str, status: int, kind: str, body: bytes) -> None:
        media = strict["paths"][path]["get"]["responses"][str(status)]["content"][kind]
        schema = {**media["schema"], "components": strict["components"]}
        errors = Draft202012Validator(schema).iter_errors(json.loads(body))
        wrong.extend(f"GET {asked}: {one.json_path}: {one.message[:300]}" for one in errors)

    async def main() -> None:
        fleet = write_fleet(project, the_fleet())
        async with served(project, fleet=fleet) as world:
            names = await fill(world)
            for path, methods in description["paths"].items():
                if "get" not in methods or path in STREAMS | FILES:
                    continue
                for query in ("", *QUERIES.get(path, ())):
                    asked = INSTEAD.get(path, path).format(**names) + query
                    answer = await world.get(asked)
                    assert answer.status == 200, (asked, answer.body)
                    check(path, asked, 200, "application/json", answer.body)
            for path in ("/v1/jobs/{job}", "/v1/sessions/{session}", "/v1/inbox/{item}"):
                asked = re.sub("{.*}", "none-such", path)
                answer = await world.get(asked)
                check(path, asked, answer.status, "application/problem+json", answer.body)

    anyio.run(main)

    assert wrong == []
