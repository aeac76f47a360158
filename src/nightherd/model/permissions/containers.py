"""Containers compared with what was accepted, and cut back to it.

An agent that leaves its container is given more; so is one whose container has another image, reaches more of the network, or
has more of the host in it. An agent that ran on the host and gets a container is given less, except for what only the engine
can give: mounts, which the engine makes as root, and settings that need `allow_unsafe`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from nightherd.model.containers.hardening import unsafe_settings
from nightherd.model.containers.policy import (
    DEFAULT_CPU_PERIOD,
    AllowedHost,
    ContainerNetwork,
    ContainerPolicy,
    Mount,
    PublishedPort,
)
from nightherd.model.permissions.fingerprint import absolute, fingerprint, relative

RANK = {
    ContainerNetwork.NONE.value: 0,
    ContainerNetwork.EGRESS.value: 1,
    ContainerNetwork.BRIDGE.value: 2,
    ContainerNetwork.HOST.value: 3,
}
"""How much a network reaches."""
DEFAULT_SHARES = 1_024
CPU = "cpu_quota"
"""Millionths of a core."""


class ContainerGrants(msgspec.Struct, frozen=True, kw_only=True):
    """What the container of an agent gives it."""

    image: str
    socket: str | None = None
    network: str
    allowed_hosts: list[AllowedHost] = []
    private_hosts: list[AllowedHost] = []
    user: str | None = None
    has_read_only_workspace: bool = False
    volumes: list[Mount] = []
    """Sources below the fleet file's directory are relative to it."""
    ports: list[PublishedPort] = []
    environment: dict[str, str] = {}
    labels: dict[str, str] = {}
    """Other programs on the host act on them."""
    host_config: str | None = None
    """None for no options."""
    unsafe: list[str] = []
    """The user and the options that undo hardening, and may; mounts are in `volumes`."""
    maxima: dict[str, int] = {}


def container_grants(policy: ContainerPolicy | None, home: str) -> ContainerGrants | None:
    """What the container gives to an agent of a fleet file in the directory `home`."""
    if policy is None:
        return None
    return ContainerGrants(
        image=policy.image,
        socket=policy.socket,
        network=policy.network.value,
        allowed_hosts=list(policy.allowed_hosts),
        private_hosts=list(policy.private_hosts),
        user=policy.user,
        has_read_only_workspace=policy.has_read_only_workspace,
        volumes=[replace(one, source=relative(one.source, home)) for one in policy.volumes],
        ports=list(policy.ports),
        environment={name: fingerprint(one) for name, one in policy.environment.items()},
        labels={name: fingerprint(one) for name, one in policy.labels.items()},
        host_config=_options_fingerprint(policy),
        unsafe=[one for one in unsafe_settings(policy) if not one.startswith("volumes.")],
        maxima=_maxima(policy),
    )


def _options_fingerprint(policy: ContainerPolicy) -> str | None:
    return fingerprint(policy.host_config) if policy.host_config else None


def _maxima(policy: ContainerPolicy) -> dict[str, int]:
    maxima = {
        "memory": policy.memory_bytes,
        "pids_limit": policy.pids_limit,
        "cpu_shares": policy.cpu_shares or DEFAULT_SHARES,
        "max_containers": policy.max_containers,
    }
    if policy.cpu_quota is not None:
        period = policy.cpu_period or DEFAULT_CPU_PERIOD
        maxima[CPU] = policy.cpu_quota * 1_000_000 // period
    return maxima


def container_widenings(
    known: ContainerGrants | None, wanted: ContainerGrants | None
) -> Iterator[str]:
    """What `wanted` gives beyond `known`, for people."""
    if wanted is None:
        if known is not None:
            yield "docker: no container any more"
        return
    yield from (f"docker.volumes {_shown(one)}" for one in wanted.volumes if _is_new(one, known))
    has_other_options = known is not None and wanted.host_config != known.host_config
    accepted = [] if known is None or has_other_options else known.unsafe
    yield from (f"docker.{one} undoes hardening" for one in wanted.unsafe if one not in accepted)
    environment = {} if known is None else known.environment
    yield from (f"docker.env {name}" for name in _changed(wanted.environment, environment))
    yield from (
        f"docker.labels {name}"
        for name in _changed(wanted.labels, {} if known is None else known.labels)
    )
    if known is None:
        return
    for name in ("image", "socket", "user"):
        if getattr(wanted, name) != getattr(known, name):
            yield f"docker.{name} {getattr(known, name)} -> {getattr(wanted, name)}"
    if has_other_options:
        yield "docker.host_config changed"
    if _is_wider_network(wanted, known):
        yield f"docker.network {known.network} -> {wanted.network}"
    yield from (
        f"docker.{key} {one.name}:{one.port}"
        for key in ("allowed_hosts", "private_hosts")
        for one in getattr(wanted, key)
        if one not in getattr(known, key)
    )
    ports = [one for one in wanted.ports if one not in known.ports]
    yield from (f"docker.ports {one.container}" for one in ports)
    if known.has_read_only_workspace and not wanted.has_read_only_workspace:
        yield "docker.workspace_mode ro -> rw"
    for name, maximum in known.maxima.items():
        if wanted.maxima.get(name, maximum + 1) > maximum:
            yield f"docker.{name} {maximum} -> {wanted.maxima.get(name, 'none')}"


def _is_wider_network(wanted: ContainerGrants, known: ContainerGrants) -> bool:
    return RANK.get(wanted.network, len(RANK)) > RANK.get(known.network, 0)


def _is_new(volume: Mount, known: ContainerGrants | None) -> bool:
    """Whether a mount was not accepted; one that was is accepted read-only too."""
    accepted = () if known is None else known.volumes
    return volume not in accepted and not (
        volume.is_read_only and replace(volume, is_read_only=False) in accepted
    )


def _accepted_volumes(wanted: list[Mount], known: ContainerGrants) -> list[Mount]:
    """The mounts that were accepted; one that was accepted read-only stays so."""
    offered = (one for volume in wanted for one in (volume, replace(volume, is_read_only=True)))
    kept: dict[str, Mount] = {}
    for one in offered:
        if not _is_new(one, known):
            kept.setdefault(one.target, one)
    return list(kept.values())


def _shown(volume: Mount) -> str:
    return f"{volume.source}:{volume.target}{':ro' if volume.is_read_only else ''}"


def _changed(wanted: Mapping[str, str], known: Mapping[str, str]) -> list[str]:
    return [name for name, one in wanted.items() if known.get(name) != one]


def narrowed_container(
    known: ContainerGrants | None, wanted: ContainerGrants | None
) -> ContainerGrants | None:
    """What stays accepted once `wanted` was seen."""
    if wanted is None:
        return known
    if known is None:
        return replace(
            wanted,
            volumes=[],
            environment={},
            labels={},
            unsafe=[],
            user=None if "user" in wanted.unsafe else wanted.user,
            host_config=None if wanted.unsafe else wanted.host_config,
        )
    return replace(
        known,
        network=known.network if _is_wider_network(wanted, known) else wanted.network,
        allowed_hosts=[one for one in wanted.allowed_hosts if one in known.allowed_hosts],
        private_hosts=[one for one in wanted.private_hosts if one in known.private_hosts],
        has_read_only_workspace=known.has_read_only_workspace or wanted.has_read_only_workspace,
        volumes=_accepted_volumes(wanted.volumes, known),
        ports=[one for one in wanted.ports if one in known.ports],
        environment={
            name: one for name, one in known.environment.items() if name in wanted.environment
        },
        labels={name: one for name, one in known.labels.items() if name in wanted.labels},
        maxima={
            name: min(one, wanted.maxima.get(name, one))
            for name, one in {**wanted.maxima, **known.maxima}.items()
        },
    )


def cut_container(
    wanted: ContainerPolicy | None,
    known: ContainerGrants | None,
    old: ContainerPolicy | None,
    home: str,
) -> tuple[ContainerPolicy | None, bool]:
    """The container with no more than what was accepted, and whether it can be given.

    Values that are not on record, such as those of variables, come from the container of before, `old`; else they stay away. A
    container whose options for the engine are unknown cannot be given.
    """
    if not any(container_widenings(known, container_grants(wanted, home))):
        return wanted, True
    grants = narrowed_container(known, container_grants(wanted, home))
    if grants is None:
        return None, False
    offered = [one for one in (wanted, old) if one is not None]
    options = [{}, *(one.host_config for one in offered)]
    fitting = [one for one in options if (fingerprint(one) if one else None) == grants.host_config]
    if not fitting:
        return None, False
    base = wanted or old or ContainerPolicy()
    volumes = (replace(one, source=absolute(one.source, home)) for one in grants.volumes)
    cut = replace(
        base,
        image=grants.image,
        socket=grants.socket,
        network=ContainerNetwork(grants.network),
        allowed_hosts=tuple(grants.allowed_hosts),
        private_hosts=tuple(grants.private_hosts),
        user=grants.user,
        has_read_only_workspace=grants.has_read_only_workspace,
        volumes=tuple(volumes),
        ports=tuple(grants.ports),
        environment=_accepted(grants.environment, [one.environment for one in offered]),
        labels=_accepted(grants.labels, [one.labels for one in offered]),
        host_config=fitting[0],
        **_limits(base, grants.maxima),
    )
    cut = replace(cut, is_unsafe=bool(unsafe_settings(cut)))
    return cut, not any(container_widenings(known, container_grants(cut, home)))


def _accepted(prints: Mapping[str, str], offered: list[Mapping[str, str]]) -> dict[str, str]:
    return {
        name: one
        for values in offered
        for name, one in values.items()
        if prints.get(name) == fingerprint(one)
    }


def _limits(policy: ContainerPolicy, maxima: Mapping[str, int]) -> dict[str, int | None]:
    period = policy.cpu_period or DEFAULT_CPU_PERIOD
    own, most = _maxima(policy), maxima.get(CPU)
    is_within = most is None or own.get(CPU, most + 1) <= most
    return {
        "memory_bytes": maxima["memory"],
        "pids_limit": maxima["pids_limit"],
        "cpu_shares": maxima["cpu_shares"],
        "max_containers": maxima["max_containers"],
        "cpu_quota": policy.cpu_quota if is_within or most is None else most * period // 1_000_000,
    }
