"""Endpoints of webhooks: what the fleet file may say of them, which events they act on, and what templates make of payloads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nightherd.errors import InvalidValueError
from nightherd.model.access.web import Web
from nightherd.model.webhooks import (
    Endpoint,
    SignatureKind,
    fill_in,
    fill_in_value,
    is_loopback,
    wants_event,
)
from nightherd.wiring.fleets import check_fleet, load_fleet

FLEET = """\
webhooks:
  {shared}
  endpoints:
    issues: {{agent: {agent}, prompt: "${{payload.title}} ${{payload}}"{more}}}
agents:
  - {{name: hello, runtime: scripted, default_prompt: x, script: [{{say: hi}}]}}
"""


def problems(directory: Path, **parts: str) -> list[str]:
    filled = {"shared": "secret_env: S", "agent": "hello", "more": "", **parts}
    (directory / "nightherd.yaml").write_text(FLEET.format(**filled))
    checked = check_fleet(directory / "nightherd.yaml", environ={}, cwd=directory)
    return [f"{one.place.line}:{one.place.column} {one.message}" for one in checked.problems]


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ({}, []),
        ({"agent": "helo"}, ["4:13 the fleet has no agent 'helo'"]),
        (
            {"shared": "port: 80"},
            ["4:13 webhooks must be signed: 'secret_env' is missing"],
        ),
        ({"shared": "port: 80", "more": ", secret_env: MINE"}, []),
        ({"more": ", channel: '${payload.room}'"}, []),
        ({"more": ", schedule: never"}, ["4:13 'hello' has no schedule 'never'"]),
    ],
)
def test_mistakes_are_found_where_they_stand(
    tmp_path: Path, parts: dict[str, str], found: list[str]
) -> None:
    assert problems(tmp_path, **parts) == found


def test_endpoints_are_resolved_with_what_they_share(tmp_path: Path) -> None:
    assert problems(tmp_path, more=", signature: standard, events: [a, b.c]") == []
    loaded = load_fleet(tmp_path / "nightherd.yaml", environ={}, cwd=tmp_path)

    assert loaded.fleet.webhooks.endpoints["issues"] == Endpoint(
        name="issues",
        agent="hello",
        prompt="${payload.title} ${payload}",
        signature=SignatureKind.STANDARD,
        secret_env="S",
        events=frozenset({"a", "b.c"}),
    )
    assert loaded.fleet.web == Web()


@pytest.mark.parametrize(
    ("events", "event", "action", "is_wanted"),
    [
        ((), "push", None, True),
        ((), None, None, True),
        (("issues",), "issues", "closed", True),
        (("issues.opened",), "issues", "opened", True),
        (("issues.opened",), "issues", "closed", False),
        (("issues.opened",), "issues", None, False),
        (("push",), None, None, False),
    ],
)
def test_events_are_wanted_by_name_or_by_action(
    events: tuple[str, ...], event: str | None, action: str | None, is_wanted: bool
) -> None:
    endpoint = Endpoint(name="x", agent="a", events=frozenset(events))

    assert wants_event(endpoint, event, {"action": action}) is is_wanted
    assert wants_event(endpoint, event, ["no", "object"]) is (not events or event in events)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("${payload.a.b}", "deep"),
        ("${payload.list.1.x}", "2"),
        ("${payload.flag} ${payload.nothing} ${payload.number}", "true null 1.5"),
        ("${payload.list}", '[{"x": 1}, {"x": 2}]'),
        ("${inputs.who} and ${payload.a.b}", "me and deep"),
        ("${payload.text}", "${payload.a.b}"),
        ("$${payload.a.b} ${PAYLOAD}", "$deep ${PAYLOAD}"),
    ],
)
def test_places_are_filled_in_once_from_the_payload(template: str, text: str) -> None:
    payload: dict[str, Any] = {
        "a": {"b": "deep"},
        "list": [{"x": 1}, {"x": 2}],
        "flag": True,
        "nothing": None,
        "number": 1.5,
        "text": "${payload.a.b}",
    }

    assert fill_in(template, payload, {"inputs.who": "me"}) == text


@pytest.mark.parametrize("place", ["missing", "a.b.c", "list.7", "list.x", "a.0"])
def test_a_place_that_is_not_in_the_payload_is_named(place: str) -> None:
    payload = {"a": {"b": 1}, "list": [1]}

    with pytest.raises(InvalidValueError, match=r"is not in the payload") as raised:
        fill_in(f"${{payload.{place}}}", payload, {})

    assert f"${{payload.{place}}}" in raised.value.message


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.5", False),
        ("localhost.example", False),
        ("127.0.0.example", False),
    ],
)
def test_addresses_of_this_machine_alone_are_told_from_others(host: str, is_own: bool) -> None:
    assert is_loopback(host) is is_own


def test_inputs_of_an_endpoint_keep_their_types() -> None:
    given = {"n": 3, "dry": True, "names": ["${payload.a.b}", 1], "none": None}

    assert fill_in_value(given, {"a": {"b": "deep"}}) == {**given, "names": ["deep", 1]}
