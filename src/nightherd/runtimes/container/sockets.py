"""Where the container engine of this machine listens."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from nightherd.errors import ContainerEngineError

UNIX = "unix://"
REMOTE = ("tcp://", "ssh://", "http://", "https://", "npipe://", "fd://")
CONNECT_S = 5.0
HOW_TO_INSTALL = "install and start Docker or Podman, or set docker.socket in the fleet file"
PERMISSION = (
    "add yourself to the group that owns the socket (docker: sudo usermod -aG docker $USER),"
    " then log in again; or use rootless Docker or Podman"
)


def find_socket(configured: str | None, environ: Mapping[str, str]) -> str:
    """Return the path of the first socket that an engine listens on; `ContainerEngineError` says what was tried.

    A socket that is configured, or named by DOCKER_HOST, is the only one that is tried.
    """
    for where, named in (
        ("docker.socket", configured),
        ("DOCKER_HOST", environ.get("DOCKER_HOST")),
    ):
        if named:
            path = local_path(named, where)
            reason = why_not(path)
            if reason is None:
                return path
            hint = PERMISSION if reason == DENIED else f"start the engine, or change {where}"
            raise ContainerEngineError(
                f"no container engine at {path} ({where}): {reason}", hint=hint
            )
    tried: list[str] = []
    is_denied = False
    for path in dict.fromkeys(usual_sockets(environ)):
        reason = why_not(path)
        if reason is None:
            return path
        is_denied = is_denied or reason == DENIED
        tried.append(f"{path} ({reason})")
    advice = PERMISSION if is_denied else HOW_TO_INSTALL
    raise ContainerEngineError(
        "no container engine was found on this machine",
        hint=f"{advice}. Tried: {', '.join(tried)}",
    )


def local_path(named: str, where: str) -> str:
    """Return the path in a socket's name; `ContainerEngineError` for an engine on another machine."""
    if named.startswith(REMOTE):
        raise ContainerEngineError(
            f"{where} is {named}: only an engine on this machine can be used, through its unix socket,"
            " because directories of this machine are mounted into the containers",
            hint=f"set {where} to a path, such as /var/run/docker.sock",
        )
    path = named.removeprefix(UNIX)
    if not path.startswith("/"):
        raise ContainerEngineError(
            f"{where} is {named}: the path of a socket must be absolute",
            hint=f"set {where} to a path, such as /var/run/docker.sock",
        )
    return path


def usual_sockets(environ: Mapping[str, str]) -> Iterator[str]:
    """Return where engines listen unless told otherwise: Docker, rootless Docker, Docker Desktop, Podman."""
    runtime = environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    home = environ.get("HOME")
    yield "/var/run/docker.sock"
    yield f"{runtime}/docker.sock"
    if home:
        yield f"{home}/.docker/run/docker.sock"
    yield "/run/podman/podman.sock"
    yield f"{runtime}/podman/podman.sock"


DENIED = "permission denied"


def why_not(path: str) -> str | None:
    """Return why no engine can be reached at `path`; None when a process listens there."""
    try:
        if not stat.S_ISSOCK(Path(path).stat().st_mode):
            return "not a socket"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(CONNECT_S)
            connection.connect(path)
    except FileNotFoundError:
        return "does not exist"
    except PermissionError:
        return DENIED
    except ConnectionRefusedError:
        return "no process listens"
    except OSError as error:
        return error.strerror or str(error)
    return None
