"""`nightherd container`: build, check and list, against a real engine."""

from __future__ import annotations

import http.server
import socket
import socketserver
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from docker_engine import DockerEngine
from surfaces.drivers import Cli


@pytest.fixture
def engine(docker_engine: DockerEngine, monkeypatch: pytest.MonkeyPatch) -> DockerEngine:
    """The engine of this run, where commands look for it."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{docker_engine.socket_path}")
    return docker_engine


@pytest.fixture
def short() -> Iterator[Path]:
    """A directory whose path leaves room for the name of a socket."""
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


def test_image_is_built_and_checked(
    engine: DockerEngine, container_image: str, cli: Cli, nowhere: Path
) -> None:
    tag = "nightherd/test-cli:built"

    built = cli("container", "build", "--base", container_image, "--tag", tag, "--claude", "none")

    assert built.code == 0, built.err
    assert built.out.startswith(f"built {tag} (")
    assert "✔ git" in built.out
    assert "! claude" in built.out
    assert "Step 1/" in built.err
    assert engine.request("GET", f"/images/{tag}/json")[0] == 200


def test_build_as_json_is_one_document(
    engine: DockerEngine, container_image: str, cli: Cli, nowhere: Path
) -> None:
    tag = "nightherd/test-cli:json"
    words = ("--base", container_image, "--tag", tag, "--claude", "none", "--json")

    built = cli("container", "build", *words)

    assert (built.code, built.err) == (0, "")
    assert built.document["schema"] == "nightherd/v1/container_image"
    assert built.data["image"] == tag
    assert (built.data["base"], built.data["claude"]) == (container_image, "none")
    assert built.data["is_usable"] is True


def test_check_ends_with_1_when_something_required_is_missing(
    engine: DockerEngine, container_image: str, cli: Cli, nowhere: Path
) -> None:
    people = cli("container", "check", container_image)
    programs = cli("container", "check", container_image, "--json")
    enough = cli("container", "check", container_image, "--without-claude")

    assert (people.code, programs.code, enough.code) == (1, 1, 0)
    assert "✗ claude       missing: runs agents of the runtimes cli and sdk" in people.out
    assert programs.data["is_usable"] is False
    assert [one["name"] for one in programs.data["requirements"] if not one["is_met"]] in (
        ["rg", "claude"],
        ["claude"],
    )


def test_image_with_the_real_claude_is_usable(
    engine: DockerEngine, claude_image: str, cli: Cli, nowhere: Path
) -> None:
    checked = cli("container", "check", claude_image, "--json")

    assert checked.code == 0, checked.out
    assert checked.data["skew"] is None


def test_missing_image_is_not_found(engine: DockerEngine, cli: Cli, nowhere: Path) -> None:
    checked = cli("container", "check", "nobody/has-this:1")

    assert (checked.code, checked.out) == (3, "")
    assert "the container engine has no image nobody/has-this:1" in checked.err
    assert checked.err.endswith("that agents run in: nightherd container build\n")


def test_name_that_is_no_image_is_a_usage_error(
    engine: DockerEngine, cli: Cli, nowhere: Path
) -> None:
    assert cli("container", "check", "../x").code == 2


def test_containers_are_listed_with_their_execution(
    engine: DockerEngine, container_image: str, cli: Cli, nowhere: Path
) -> None:
    labels = {"nightherd.fleet": "cli-test", "nightherd.execution": "exec-cli-test"}
    body = {"Image": container_image, "Entrypoint": ["true"], "Labels": labels}
    created = engine.json("POST", "/containers/create?name=nh-cli-list", body)["Id"]
    try:
        people = cli("container")
        programs = cli("container", "list", "--json")
    finally:
        engine.json("DELETE", f"/containers/{created}?force=1")

    assert (people.code, programs.code) == (0, 0), (people.err, programs.out)
    line = next(line for line in people.out.splitlines() if created[:12] in line)
    assert "nh-cli-list" in line
    assert "exec-cli-test" in line
    (row,) = [one for one in programs.data if one["id"] == created]
    assert (row["fleet"], row["state"], row["image"]) == ("cli-test", "created", container_image)
    assert row["created_at"].startswith("20")


@pytest.mark.parametrize("words", ["list", "check", "build --claude none"])
def test_without_an_engine_every_command_says_what_to_do(
    words: str, cli: Cli, nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")

    done = cli("container", *words.split())

    assert (done.code, done.out) == (5, "")
    assert "no container engine at /nowhere/docker.sock (DOCKER_HOST): does not exist" in done.err


def test_engine_on_another_machine_is_refused(
    cli: Cli, nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://10.0.0.1:2375")

    done = cli("container", "list", "--json")

    assert (done.code, done.data["code"]) == (5, "container_engine")
    assert "directories of this machine are mounted" in done.data["message"]


@pytest.mark.parametrize("words", ["list", "check", "build --claude none"])
def test_engine_that_hangs_is_an_error_within_seconds(
    words: str, cli: Cli, nowhere: Path, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = short / "hung"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    monkeypatch.setattr("nightherd.wiring.containers.ASK_S", 0.2)
    with socket.socket(socket.AF_UNIX) as hung:
        hung.bind(str(path))
        hung.listen()

        done = cli("container", *words.split())

    assert (done.code, done.out) == (5, "")
    assert f"the container engine at {path} cannot be reached: no answer within 0.2 s" in done.err
    assert "restart it (systemctl restart docker)" in done.err


def test_list_of_an_engine_that_answers_some_calls_and_hangs_in_others_is_bounded(
    cli: Cli, nowhere: Path, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = short / "half"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    monkeypatch.setattr("nightherd.cli.containers.list.ASK_S", 0.2)

    class Half(http.server.BaseHTTPRequestHandler):
        """As `dockerd` while it holds the lock of its containers."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if "/containers/" in self.path:
                over.wait(30)
                return
            body = b'{"ApiVersion": "1.41", "Version": "20.10"}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    over = threading.Event()
    with socketserver.ThreadingUnixStreamServer(str(path), Half) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            done = cli("container", "list")
        finally:
            over.set()
            server.shutdown()

    assert (done.code, done.out) == (5, "")
    assert "cannot be reached: no answer within 0.2 s" in done.err
