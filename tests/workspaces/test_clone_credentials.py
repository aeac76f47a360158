"""Credentials of a repository: they open it, and reach no argument, no file, no other server and no message."""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from nightherd.errors import WorkspaceError
from nightherd.model.workspaces.policy import CloneTerms
from workspaces.git_server import GitServer, serving
from workspaces.scene import git
from workspaces.upstream import Upstream, contents, new_upstream

USER, PASSWORD = "herder", "p@ss word'$(x)\"%41"
SPELLINGS = (
    PASSWORD.encode(),
    quote(PASSWORD, safe="").encode(),
    base64.b64encode(f"{USER}:{PASSWORD}".encode()),
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home directory of a user, with a configuration of git in it."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return home


@pytest.fixture
def server(tmp_path: Path, home: Path) -> Iterator[GitServer]:
    """A server that lets one user in."""
    with serving(tmp_path / "served") as server:
        server.login = (USER, PASSWORD)
        yield server


@pytest.fixture
def upstream(tmp_path: Path, server: GitServer) -> Upstream:
    upstream = new_upstream(tmp_path)
    git(tmp_path, "clone", "--quiet", "--bare", "upstream", "served/x.git")
    upstream.terms = CloneTerms(url=server.url("x.git"), username=USER, password=PASSWORD)
    return upstream


def publish(upstream: Upstream) -> None:
    """A commit that the server has and the clone does not."""
    upstream.commit()
    git(upstream.path, "push", "--quiet", str(upstream.folder / "served/x.git"), "main")


def command_lines() -> list[bytes]:
    """The arguments of every process of this machine."""
    found = []
    for entry in os.listdir("/proc"):  # noqa: PTH208
        if entry.isdigit():
            try:
                found.append(Path("/proc", entry, "cmdline").read_bytes())
            except OSError:
                continue
    return found


def test_credentials_open_the_repository_for_cloning_and_fetching(upstream: Upstream) -> None:
    assert upstream.clone() == []
    publish(upstream)

    assert upstream.clone() == []

    assert upstream.origin() == upstream.branches()


def test_no_process_has_the_password_as_an_argument(upstream: Upstream, server: GitServer) -> None:
    server.gate.clear()
    job = threading.Thread(target=upstream.clone)
    job.start()
    assert server.arrived.wait(60)

    lines = command_lines()
    server.gate.set()
    job.join()

    assert upstream.origin() == upstream.branches()
    assert [line for line in lines if server.url("x.git").encode() in line]
    assert [line for line in lines for secret in SPELLINGS if secret in line] == []


def test_no_file_has_the_password(upstream: Upstream, server: GitServer) -> None:
    server.gate.clear()
    job = threading.Thread(target=upstream.clone)
    job.start()
    assert server.arrived.wait(60)

    meanwhile = contents(upstream.folder)
    server.gate.set()
    job.join()
    publish(upstream)
    upstream.clone()
    afterwards = contents(upstream.folder)

    assert [name for name in meanwhile if name.startswith("state/clones/")]
    for files in (meanwhile, afterwards):
        kept = [name for name, data in files.items() for secret in SPELLINGS if secret in data]
        assert kept == []
    assert git(upstream.root, "remote", "get-url", "origin") == server.url("x.git")


def test_helpers_of_the_user_store_nothing_of_it(upstream: Upstream, home: Path) -> None:
    (home / ".gitconfig").write_text(
        "[credential]\n\thelper = store\n"
        f'[credential "{upstream.terms.url}"]\n\thelper = "!cat >> {home}/canary; true"\n'
    )

    upstream.clone()

    assert [path.name for path in home.iterdir()] == [".gitconfig"]


def test_helpers_of_the_user_answer_where_the_fleet_says_nothing(
    upstream: Upstream, home: Path
) -> None:
    (home / "password").write_text(PASSWORD)
    (home / "helper.sh").write_text(
        f"cat >> {home}/asked\necho username={USER}\nprintf password=\ncat {home}/password\necho\n"
    )
    (home / ".gitconfig").write_text(f'[credential]\n\thelper = "!sh {home}/helper.sh"\n')

    assert upstream.clone(username=None, password=None) == []
    assert "host=127.0.0.1" in (home / "asked").read_text()


def test_helpers_of_the_user_are_asked_for_the_password_of_the_named_user(
    upstream: Upstream, home: Path
) -> None:
    (home / ".gitconfig").write_text(f'[credential]\n\thelper = "!cat >> {home}/asked; true"\n')

    with pytest.raises(WorkspaceError):
        upstream.clone(username="somebody", password=None)

    assert "username=somebody" in (home / "asked").read_text()


@pytest.mark.parametrize("password", ["wrong password", None])
def test_a_refused_login_cannot_pass_and_is_not_repeated_in_the_message(
    upstream: Upstream, password: str | None
) -> None:
    with pytest.raises(WorkspaceError) as caught:
        upstream.clone(password=password)

    assert not caught.value.can_pass
    assert "wrong password" not in str(caught.value)
    hint = caught.value.hint or ""
    assert ("token" in hint) if password else ("GITHUB_TOKEN" in hint)
    assert not upstream.root.exists()
    assert not upstream.staging.exists()


def test_a_login_that_is_refused_later_is_a_note_without_it(upstream: Upstream) -> None:
    upstream.clone()

    (note,) = upstream.clone(password="old secret")

    assert "Authentication failed" in note
    assert "old secret" not in note


@pytest.mark.parametrize(
    ("status", "can_pass"), [(503, True), (500, True), (429, True), (403, False), (404, False)]
)
def test_what_the_server_says_decides_whether_trying_again_helps(
    upstream: Upstream, server: GitServer, status: int, can_pass: bool
) -> None:
    server.status = status

    with pytest.raises(WorkspaceError) as caught:
        upstream.clone()

    assert caught.value.can_pass is can_pass


def test_a_repository_that_the_server_does_not_have_cannot_pass(
    upstream: Upstream, server: GitServer
) -> None:
    with pytest.raises(WorkspaceError) as caught:
        upstream.clone(url=server.url("y.git"))

    assert not caught.value.can_pass
    assert "check 'repo'" in (caught.value.hint or "")


def test_a_network_that_is_down_can_pass(upstream: Upstream) -> None:
    with serving(upstream.folder) as gone:
        url = gone.url("x.git")

    with pytest.raises(WorkspaceError) as caught:
        upstream.clone(url=url)

    assert caught.value.can_pass
    assert "Connection refused" in caught.value.message or "connect" in caught.value.message


def test_another_server_gets_nothing_of_it(upstream: Upstream, server: GitServer) -> None:
    with serving(upstream.folder / "served") as other:
        other.login = (USER, PASSWORD)
        server.redirect = other.url("").rstrip("/")

        with pytest.raises(WorkspaceError):
            upstream.clone()

    assert other.logins
    assert set(other.logins) == {None}
