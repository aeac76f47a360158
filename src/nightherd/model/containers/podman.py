"""Where Podman's Docker-compatible API differs from that of the Docker Engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OWNED = "U"
"""Podman's option for a directory in memory that belongs to the container's user. It knows no `uid=`."""


def is_podman(version: Mapping[str, Any]) -> bool:
    """Return whether the answer to `GET /version` is that of Podman."""
    components = [str(one.get("Name", "")) for one in version.get("Components") or ()]
    return any("podman" in name.lower() for name in components)


def podman_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request that creates a container, as Podman understands it."""
    host_config = body.get("HostConfig") or {}
    uid, _, gid = str(body.get("User", "")).partition(":")
    owner = {f"uid={uid}", f"gid={gid}"}
    tmpfs = {
        path: _owned(str(options), owner)
        for path, options in (host_config.get("Tmpfs") or {}).items()
    }
    return {**body, "HostConfig": {**host_config, "Tmpfs": tmpfs}}


def _owned(options: str, owner: set[str]) -> str:
    """The options without those that name the owner. Another owner than the container's user stays, and is refused."""
    given = options.split(",")
    left = [option for option in given if option not in owner]
    return ",".join([*left, OWNED] if len(left) < len(given) else left)
