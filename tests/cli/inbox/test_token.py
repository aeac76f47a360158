"""`nightherd token`: a token is shown once, kept as a hash, and of no use once it is revoked."""

from __future__ import annotations

from pathlib import Path

from nightherd.host.machine import user_name
from surfaces.drivers import Cli


def test_a_token_is_shown_once_and_kept_nowhere(cli: Cli, fleet: Path) -> None:
    added = cli("token", "add", "alice", "--json").data
    listed = cli("token", "--json")
    shown = cli("token", "list")

    secret = added["token"]
    assert (added["name"], added["created_by"], len(secret)) == ("alice", user_name(), 56)
    assert secret not in listed.out + shown.out
    assert [one["name"] for one in listed.data] == ["alice"]
    files = [file.read_bytes() for file in (fleet / ".nightherd").rglob("*") if file.is_file()]
    assert files
    assert not any(secret.encode() in file for file in files)


def test_a_name_is_in_use_until_it_is_revoked(cli: Cli, fleet: Path) -> None:
    first = cli("token", "add", "alice").out
    taken = cli("token", "add", "alice")
    revoked = cli("token", "revoke", "alice")
    again = cli("token", "revoke", "alice")
    second = cli("token", "add", "alice").out

    assert (taken.code, again.code) == (5, 5)
    assert "revoke it first" in taken.err
    assert revoked.out == "alice revoked\n"
    assert first.startswith("nht_")
    assert second.startswith("nht_")
    assert first != second


def test_names_that_mean_something_else_are_refused(cli: Cli, fleet: Path) -> None:
    refused = [cli("token", "add", name) for name in ("web", "nightherd", "a b", "x" * 101)]
    missing = cli("token", "revoke", "nobody")

    assert all(one.code not in (0, 70) for one in refused), refused
    assert "there is no token 'nobody'" in missing.err
    assert cli("token", "list").err.startswith("there are no tokens")


def test_a_token_has_the_role_it_was_added_with(cli: Cli, fleet: Path) -> None:
    usual = cli("token", "add", "alice", "--json").data
    viewer = cli("token", "add", "vera", "--role", "viewer", "--json").data
    wrong = cli("token", "add", "bob", "--role", "owner")

    assert (usual["role"], viewer["role"]) == ("operator", "viewer")
    assert wrong.code == 2
    assert [one["role"] for one in cli("token", "list", "--json").data] == ["operator", "viewer"]
    assert "ROLE" in cli("token", "list").out
