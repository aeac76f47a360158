"""The API is as it is described: whatever is asked, the answer has a described shape and is never an error of ours."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
import requests
import schemathesis
from anyio import to_thread
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import (
    CheckFunction,
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from nightherd.web.access.guard import Door
from nightherd.web.api_context import ApiContext
from nightherd.web.ports import Port
from nightherd.web.server import OPENAPI
from web.web_world import FLEET, served, write_fleet

CHECKS: list[CheckFunction] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
OPERATIONS = {
    ("GET", "/v1/me"),
    ("GET", "/v1/push"),
    ("POST", "/v1/push/subscriptions"),
    ("DELETE", "/v1/push/subscriptions/{subscription}"),
    ("POST", "/v1/push/subscriptions/{subscription}/test"),
    ("GET", "/v1/tokens"),
    ("POST", "/v1/tokens"),
    ("DELETE", "/v1/tokens/{name}"),
    ("POST", "/v1/login"),
    ("POST", "/v1/logout"),
    ("GET", "/v1/agents"),
    ("GET", "/v1/agents/{name}"),
    ("GET", "/v1/config"),
    ("GET", "/v1/doctor"),
    ("GET", "/v1/logs"),
    ("GET", "/v1/notify"),
    ("POST", "/v1/notify/{target}/test"),
    ("GET", "/v1/work"),
    ("POST", "/v1/work/release"),
    ("GET", "/v1/work/locks"),
    ("POST", "/v1/work/unlock"),
    ("POST", "/v1/reload"),
    ("POST", "/v1/retention/apply"),
    ("GET", "/v1/retention/plan"),
    ("GET", "/v1/agents/{name}/config"),
    ("GET", "/v1/schedules"),
    ("GET", "/v1/schedules/{agent}/{name}"),
    ("GET", "/v1/slots"),
    ("GET", "/v1/status"),
    ("POST", "/v1/agents/{name}/reset"),
    ("POST", "/v1/schedules/{agent}/{name}/disable"),
    ("POST", "/v1/schedules/{agent}/{name}/enable"),
    ("POST", "/v1/schedules/{agent}/{name}/reset"),
    ("POST", "/v1/schedules/{agent}/{name}/run"),
    ("POST", "/v1/schedules/{agent}/{name}/set"),
    ("GET", "/healthz"),
    ("GET", "/metrics"),
    ("GET", "/v1/hooks/{name}/deliveries"),
    ("GET", "/v1/jobs"),
    ("GET", "/v1/jobs/{job}"),
    ("GET", "/v1/jobs/{job}/events"),
    ("GET", "/v1/jobs/{job}/events/{seq}/body"),
    ("GET", "/v1/blobs/{sha256}"),
    ("GET", "/v1/jobs/{job}/outline"),
    ("GET", "/v1/search"),
    ("GET", "/v1/costs"),
    ("GET", "/v1/home"),
    ("POST", "/v1/visit"),
    ("GET", "/v1/inbox"),
    ("GET", "/v1/inbox/{item}"),
    ("POST", "/v1/inbox/{item}/answers"),
    ("GET", "/v1/sessions"),
    ("GET", "/v1/sessions/{session}"),
    ("GET", "/v1/sessions/{session}/tree"),
    ("GET", "/v1/sessions/{session}/messages"),
    ("GET", "/v1/sessions/{session}/messages/{number}"),
    ("GET", "/v1/sessions/{session}/compare/{other}"),
    ("POST", "/v1/sessions/{session}/resume"),
    ("POST", "/v1/sessions/{session}/fork"),
    ("POST", "/v1/sessions/{session}/use"),
    ("PATCH", "/v1/sessions/{session}"),
    ("DELETE", "/v1/sessions/{session}"),
    ("POST", "/v1/sessions/cleanup"),
    ("POST", "/v1/sessions/import"),
    ("POST", "/v1/sessions/import/file"),
    ("POST", "/v1/sessions/{session}/takeover"),
    ("POST", "/v1/hooks/{name}"),
    ("POST", "/v1/jobs"),
    ("POST", "/v1/jobs/bulk"),
    ("GET", "/v1/jobs/{job}/export"),
    ("GET", "/v1/jobs/{job}/config"),
    ("GET", "/v1/sessions/{session}/export"),
    ("POST", "/v1/jobs/{job}/apply"),
    ("POST", "/v1/jobs/{job}/merge"),
    ("POST", "/v1/jobs/{job}/push"),
    ("GET", "/v1/jobs/{job}/checkpoints"),
    ("GET", "/v1/jobs/{job}/checkpoints/{number}"),
    ("POST", "/v1/jobs/{job}/fork"),
    ("POST", "/v1/jobs/{job}/cancel"),
    ("POST", "/v1/jobs/{job}/resume"),
    ("POST", "/v1/jobs/{job}/retry"),
    ("GET", "/v1/workflows"),
    ("GET", "/v1/workflows/{workflow}"),
    ("PATCH", "/v1/workflows/{workflow}"),
    ("POST", "/v1/workflows/{workflow}/runs"),
    ("GET", "/v1/runs"),
    ("GET", "/v1/runs/{run}"),
    ("GET", "/v1/runs/{run}/definition"),
    ("GET", "/v1/runs/{run}/events"),
    ("GET", "/v1/runs/{run}/outputs/{phase}"),
    ("POST", "/v1/runs/{run}/cancel"),
    ("POST", "/v1/runs/{run}/fork"),
    ("POST", "/v1/runs/{run}/raise"),
    ("POST", "/v1/runs/{run}/resume"),
    ("POST", "/v1/runs/{run}/retry"),
    ("POST", "/v1/runs/{run}/signal"),
    ("PATCH", "/v1/runs/{run}/scratch"),
    ("GET", "/v1/jobs/{job}/diff"),
    ("GET", "/v1/workspaces"),
    ("GET", "/v1/workspaces/{workspace}"),
    ("DELETE", "/v1/workspaces/{workspace}"),
    ("GET", "/v1/stream"),
}


WORKFLOWS = """\
workflows:
  flow:
    inputs: {word: {default: cow}}
    phases:
      - {name: ask, gate: {summary: "Say ${inputs.word}?"}}
      - {name: rest, wait: {event: deployed}}
"""
OF_RUNS: list[tuple[str, str, Any]] = [
    ("GET", "/v1/workflows", None),
    ("GET", "/v1/workflows/{workflow}", None),
    ("PATCH", "/v1/workflows/{workflow}", {"enabled": True}),
    ("POST", "/v1/workflows/{workflow}/runs", {"inputs": {"word": "pig"}}),
    ("GET", "/v1/runs", None),
    ("GET", "/v1/runs/{run}", None),
    ("GET", "/v1/runs/{run}/definition", None),
    ("GET", "/v1/runs/{run}/events", None),
    ("POST", "/v1/runs/{run}/fork", {"at": "ask", "inputs": {"word": "hen"}}),
    ("POST", "/v1/runs/{run}/raise", {"limits": {"spend": "5"}}),
    ("POST", "/v1/runs/{run}/signal", {"event": "deployed", "payload": [1]}),
    ("PATCH", "/v1/runs/{run}/scratch", {"note": {"deep": 1}}),
    ("POST", "/v1/runs/{run}/cancel", None),
    ("POST", "/v1/runs/{run}/retry", None),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The API on a port, with a job and a run in it; nothing has to be shown there."""
    directory = tmp_path_factory.mktemp("served")
    fleet = write_fleet(directory, FLEET + WORKFLOWS)
    ready, done = threading.Event(), threading.Event()
    found: list[int] = []

    def make_ports(site: ApiContext) -> list[Port]:
        door = Door(counters=site.counters, hook_limit=lambda: 1_000_000)
        return [Port(host="127.0.0.1", port=0, door=door)]

    async def main() -> None:
        async with served(directory, fleet=fleet, make_ports=make_ports) as world:
            await world.run()
            assert (await world.post("/v1/workflows/flow/runs")).status == 201
            found.extend(world.ports)
            ready.set()
            await to_thread.run_sync(done.wait)

    thread = threading.Thread(target=anyio.run, args=(main,))
    thread.start()
    try:
        assert ready.wait(60)
        yield f"http://127.0.0.1:{found[0]}"
    finally:
        done.set()
        thread.join()


def test_every_path_is_described(address: str) -> None:
    described = requests.get(address + OPENAPI, timeout=60).json()

    paths = described["paths"]
    assert described["openapi"].startswith("3.1")
    assert {
        (method.upper(), path) for path, methods in paths.items() for method in methods
    } == OPERATIONS
    assert all(
        operation["description"] for methods in paths.values() for operation in methods.values()
    )


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), sorted(OPERATIONS))
def test_answers_are_as_described_whatever_is_asked(address: str, method: str, path: str) -> None:
    schema = schemathesis.openapi.from_url(address + OPENAPI)
    operation = schema[path][method]

    @settings(
        max_examples=15,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
    )
    @given(case=operation.as_strategy())
    def ask(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(checks=CHECKS, timeout=60)

    ask()


@pytest.mark.parametrize("reference", ["@last", "@last-failed", "%00", "%2e%2e%2f", "a" * 3_000])
def test_references_of_every_kind_are_answered(address: str, reference: str) -> None:
    answer = requests.get(f"{address}/v1/jobs/{reference}", timeout=60)

    assert answer.status_code in (200, 404)


def test_what_is_done_with_a_run_is_answered_as_described(address: str) -> None:
    schema = schemathesis.openapi.from_url(address + OPENAPI)
    named = {"workflow": "flow", "run": "@last"}
    for method, path, body in OF_RUNS:
        places = {name: value for name, value in named.items() if f"{{{name}}}" in path}
        operation = schema[path][method]
        if body is None:
            case = operation.Case(path_parameters=places)
        else:
            case = operation.Case(path_parameters=places, body=body, media_type="application/json")

        answer = case.call_and_validate(checks=CHECKS, timeout=60)

        assert answer.status_code in (200, 201), (method, path, answer.content)
