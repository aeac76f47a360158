"""ContainerPolicy: the container that an agent's jobs run in, as the fleet file describes it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

DEFAULT_IMAGE = "nightherd/runtime:latest"
"""What `nightherd container build` makes."""
DEFAULT_PIDS = 512
"""Processes and threads of a container; a fork bomb ends here."""
DEFAULT_CPU_PERIOD = 100_000
"""Microseconds, the kernel's own."""


class ContainerNetwork(StrEnum):
    """What a container can reach."""

    NONE = "none"
    """Nothing but itself."""
    BRIDGE = "bridge"
    """The engine's network: the internet, and what listens on the host's addresses."""
    HOST = "host"
    """Everything that the host can."""
    EGRESS = "egress"
    """The hosts of an allow-list, through a proxy of ours, and nothing else."""


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A directory or file of the host inside the container."""

    source: str
    target: str
    is_read_only: bool = False


class PublishedPort(msgspec.Struct, frozen=True, kw_only=True):
    """A port of the container on the host's loopback interface."""

    container: int
    host: int | None = None
    """None for any that is free."""


class AllowedHost(msgspec.Struct, frozen=True, kw_only=True):
    """A destination that `network: egress` allows."""

    name: str
    """Lower case; `*.example.com` allows every name below example.com."""
    port: int = 443


class ContainerPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """One container, resolved: paths absolute, defaults filled in."""

    image: str = DEFAULT_IMAGE
    socket: str | None = None
    """Where the engine listens; None to look for it."""
    is_ephemeral: bool = True
    """Whether each job gets a new container; else the jobs of a session share one."""
    max_containers: int = 5
    """Idle containers that are kept for this agent."""
    network: ContainerNetwork = ContainerNetwork.BRIDGE
    allowed_hosts: tuple[AllowedHost, ...] = ()
    private_hosts: tuple[AllowedHost, ...] = ()
    """More destinations, which may have an address of a private network."""
    user: str | None = None
    """UID or UID:GID; None to choose one that is not root and can use the working directory."""
    memory_bytes: int = 2 * 1024**3
    cpu_shares: int | None = None
    cpu_period: int | None = None
    cpu_quota: int | None = None
    """Microseconds per period; None for as many cores as the machine has."""
    pids_limit: int = DEFAULT_PIDS
    has_read_only_workspace: bool = False
    tmpfs: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Options by path."""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    volumes: tuple[Mount, ...] = ()
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Variables of agents inside; never part of the container's own configuration."""
    ports: tuple[PublishedPort, ...] = ()
    host_config: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Options for the engine as they are, merged last."""
    is_unsafe: bool = False
    """Whether `host_config` may undo hardening (`allow_unsafe` in the fleet file)."""
