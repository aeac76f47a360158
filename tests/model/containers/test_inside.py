"""As whom an agent in a container runs, and which variables it gets."""

from __future__ import annotations

import pytest

from nightherd.errors import RefusedError
from nightherd.model.containers.engine_traits import EngineTraits, Users, traits_of, unlimited_text
from nightherd.model.containers.user import (
    Ids,
    check_readable,
    choose_user,
    ids_of,
    owner_outside,
)
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


def test_root_of_a_rootless_engine_is_the_worker() -> None:
    def outside(user: Ids) -> Ids | None:
        return owner_outside(user, worker=ADA, engine_owner=ADA.uid, users=Users.ROOTLESS)

    chosen = choose_user(None, worker=ADA, owner=BOB, users=Users.ROOTLESS)

    assert (chosen, outside(chosen)) == (ROOT, ADA)
    assert choose_user("7", worker=ADA, owner=BOB, users=Users.ROOTLESS) == Ids(7, 7)
    assert outside(ADA) is None, "a number that is the worker's is another user there"


@pytest.mark.parametrize(
    ("users", "engine_owner", "message"),
    [
        (
            Users.ROOTLESS,
            BOB.uid,
            "is the rootless one of user 1001, and this worker is of user 501",
        ),
        (Users.REMAPPED, ADA.uid, "userns-remap"),
    ],
)
def test_engine_that_shares_no_files_with_the_worker_is_refused(
    users: Users, engine_owner: int, message: str
) -> None:
    with pytest.raises(RefusedError, match=message):
        owner_outside(ROOT, worker=ADA, engine_owner=engine_owner, users=users)
    assert owner_outside(BOB, worker=ROOT, engine_owner=0, users=Users.SAME) == BOB


def test_only_root_reads_what_claude_writes_as_another_user() -> None:
    check_readable(BOB, BOB, ROOT)
    check_readable(ROOT, ADA, ADA)
    for outside in (BOB, None):
        with pytest.raises(RefusedError, match="of user 501, cannot read"):
            check_readable(BOB, outside, ADA)


@pytest.mark.parametrize(
    ("info", "users", "unlimited"),
    [
        ({}, Users.SAME, ()),
        ({"SecurityOptions": ["name=seccomp,profile=default"]}, Users.SAME, ()),
        ({"SecurityOptions": ["name=rootless"], "PidsLimit": True}, Users.ROOTLESS, ()),
        ({"SecurityOptions": ["name=userns"], "MemoryLimit": None}, Users.REMAPPED, ()),
        (
            {"MemoryLimit": False, "PidsLimit": False, "CpuCfsQuota": False},
            Users.SAME,
            ("memory", "processes", "processor time"),
        ),
    ],
)
def test_traits_of_an_engine(
    info: dict[str, object], users: Users, unlimited: tuple[str, ...]
) -> None:
    assert traits_of(info) == EngineTraits(users=users, unlimited=unlimited)


def test_what_is_not_limited_is_named() -> None:
    assert unlimited_text(("memory", "processes")).endswith("does not limit memory and processes")


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
