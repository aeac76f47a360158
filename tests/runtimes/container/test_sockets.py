"""Where the engine is looked for, in which order, and what is said when there is none."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nightherd.errors import ContainerEngineError
from nightherd.runtimes.container import sockets
from nightherd.runtimes.container.sockets import find_socket, usual_sockets


@pytest.fixture
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory whose name is short enough for sockets; the usual places are below it."""
    link = Path("/tmp") / f"nh-{os.getpid()}-{abs(hash(tmp_path)) % 10**8}"
    link.symlink_to(tmp_path)
    usual = sockets.usual_sockets
    monkeypatch.setattr(
        sockets, "usual_sockets", lambda environ: (f"{link}{path}" for path in usual(environ))
    )
    yield link
    link.unlink()


def listen(path: Path) -> socket.socket:
    path.parent.mkdir(parents=True, exist_ok=True)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(path))
    server.listen()
    return server


def test_configured_socket_comes_before_the_variable(short: Path) -> None:
    with listen(short / "a") as _, listen(short / "b") as _:
        environ = {"DOCKER_HOST": f"unix://{short}/b"}

        assert find_socket(f"{short}/a", environ) == f"{short}/a"
        assert find_socket(f"unix://{short}/a", environ) == f"{short}/a"
        assert find_socket(None, environ) == f"{short}/b"


def test_usual_places_are_tried_in_order() -> None:
    environ = {"XDG_RUNTIME_DIR": "/run/user/7", "HOME": "/people/ann"}

    assert list(usual_sockets(environ)) == [
        "/var/run/docker.sock",
        "/run/user/7/docker.sock",
        "/people/ann/.docker/run/docker.sock",
        "/run/podman/podman.sock",
        "/run/user/7/podman/podman.sock",
    ]


def test_socket_of_a_dead_engine_is_passed_over(short: Path) -> None:
    listen(short / "var/run/docker.sock").close()
    with listen(short / "r/podman/podman.sock"):
        found = find_socket(None, {"XDG_RUNTIME_DIR": "/r"})

    assert found == f"{short}/r/podman/podman.sock"


def test_without_an_engine_every_place_is_named(short: Path) -> None:
    listen(short / "var/run/docker.sock").close()

    with pytest.raises(ContainerEngineError) as raised:
        find_socket(None, {"XDG_RUNTIME_DIR": "/r", "HOME": "/h"})

    hint = str(raised.value.hint)
    assert f"{short}/var/run/docker.sock (no process listens)" in hint
    assert f"{short}/r/podman/podman.sock (does not exist)" in hint
    assert "install and start Docker or Podman" in hint


@pytest.mark.parametrize("host", ["tcp://10.0.0.1:2375", "ssh://me@host", "https://host:2376"])
def test_engine_on_another_machine_is_refused_with_the_reason(host: str) -> None:
    with pytest.raises(ContainerEngineError, match="directories of this machine are mounted"):
        find_socket(None, {"DOCKER_HOST": host})


def test_relative_path_is_refused() -> None:
    with pytest.raises(ContainerEngineError, match="must be absolute"):
        find_socket("docker.sock", {})


def test_socket_that_is_named_and_missing_is_not_replaced_by_another(short: Path) -> None:
    with listen(short / "var/run/docker.sock"):
        with pytest.raises(ContainerEngineError, match=r"DOCKER_HOST.*does not exist"):
            find_socket(None, {"DOCKER_HOST": f"unix://{short}/nowhere"})
        with pytest.raises(ContainerEngineError, match=r"docker\.socket.*not a socket"):
            find_socket("/dev/null", {})


AS_NOBODY = """
import os, sys
from nightherd.errors import ContainerEngineError
from nightherd.runtimes.container.sockets import find_socket
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    find_socket(sys.argv[1], {})
except ContainerEngineError as error:
    print(error.message, error.hint)
"""


def test_permission_denied_names_the_group(short: Path) -> None:
    with listen(short / "s"):
        (short / "s").chmod(0)
        (short.resolve()).chmod(0o755)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, short / "s"], capture_output=True, text=True
        )

    assert "permission denied" in done.stdout, done.stderr
    assert "usermod -aG docker" in done.stdout
