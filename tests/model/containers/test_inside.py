"""As whom an agent in a container runs, and which variables it gets."""

from __future__ import annotations

import pytest

from nightherd.model.containers.user import Ids, choose_user, ids_of
from nightherd.model.containers.variables import TOKEN, variables_inside

ROOT, ADA, BOB = Ids(0, 0), Ids(501, 20), Ids(1001, 1001)


@pytest.mark.parametrize(
    ("configured", "worker", "owner", "chosen"),
    [
        (None, ADA, BOB, ADA),
        (None, ROOT, BOB, BOB),
        (None, ROOT, ROOT, Ids(1000, 1000)),
        ("7", ROOT, ROOT, Ids(7, 7)),
        ("7:8", ADA, ADA, Ids(7, 8)),
    ],
)
def test_user_is_never_root_by_itself(
    configured: str | None, worker: Ids, owner: Ids, chosen: Ids
) -> None:
    assert choose_user(configured, worker=worker, owner=owner) == chosen


def test_ids_are_spelled_as_the_engine_takes_them() -> None:
    assert str(ids_of("7:8")) == "7:8"


WORKER = {
    "HOME": "/home/ada",
    "PATH": "/home/ada/bin",
    "TZ": "Europe/Berlin",
    "AWS_SECRET_ACCESS_KEY": "key",
    "ANTHROPIC_BASE_URL": "https://api.example.com",
    "ANTHROPIC_API_KEY": "sk",
    "SSH_AUTH_SOCK": "/run/ssh",
}


def test_agent_gets_what_it_was_given_and_nothing_else_of_the_worker() -> None:
    inside = variables_inside(WORKER, {"GIVEN": "1", "PATH": "/opt/bin"})

    assert inside.keys() == {"HOME", "PATH", "TERM", "TMPDIR", "TZ", "GIVEN"}
    assert (inside["HOME"], inside["PATH"]) == ("/home/agent", "/opt/bin")


def test_claude_gets_its_login_and_the_path_of_the_image() -> None:
    inside = variables_inside(WORKER, {}, path="/usr/bin", has_login=True, access_token="oat")

    assert inside["ANTHROPIC_API_KEY"] == "sk"
    assert inside["PATH"] == "/usr/bin"
    assert TOKEN not in inside
    assert not {"AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK"} & inside.keys()


@pytest.mark.parametrize(
    ("worker", "token"),
    [({}, "oat"), ({"CLAUDE_CODE_USE_BEDROCK": "1"}, None), ({TOKEN: "own"}, "own")],
)
def test_access_token_is_used_where_there_is_no_other_login(
    worker: dict[str, str], token: str | None
) -> None:
    inside = variables_inside(worker, {}, has_login=True, access_token="oat")

    assert inside.get(TOKEN) == token
