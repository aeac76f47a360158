"""Hardening: what the engine is asked for when it creates a container, and where a policy gives that up.

Bodies are those of the Docker Engine API 1.41. Nothing is privileged, no capability is kept, and only what is mounted can be
written. The default seccomp profile is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nightherd.model.containers.mounts import HOME, is_root, is_unsafe_source
from nightherd.model.containers.policy import (
    DEFAULT_CPU_PERIOD,
    ContainerNetwork,
    ContainerPolicy,
    Mount,
)
from nightherd.model.containers.undone import NO_NEW_PRIVILEGES, undone_hardening

__all__ = [
    "create_body",
    "undone_hardening",
    "unsafe_mounts",
    "unsafe_notice",
    "unsafe_settings",
]

TEMPORARY = "/tmp"  # noqa: S108 (inside a container)
CONFINED = "nosuid,nodev"
LOG = {"Type": "json-file", "Config": {"max-size": "1m", "max-file": "1"}}
"""What PID 1 prints; the output of agents does not go there."""
JOINED = frozenset({"Tmpfs", "PortBindings"})
"""Options of `host_config` that are added to ours, name by name."""
LONGEST_HOSTNAME = 63


def create_body(  # noqa: PLR0913 (what a container is made of)
    policy: ContainerPolicy,
    *,
    name: str,
    user: str,
    mounts: Sequence[Mount],
    working_directory: str,
    command: Sequence[str],
    labels: Mapping[str, str],
    environment: Mapping[str, str],
    cpus: int,
) -> dict[str, Any]:
    """The body of the request that creates a container.

    `mounts` are all of them, those of the policy too. `environment` is readable by everybody who may use the engine: it must
    hold no secret. `cpus` is how many cores a container may use where the policy does not say.
    """
    ports = policy.ports if policy.network is ContainerNetwork.BRIDGE else ()
    host_config = _merged(
        _host_config(policy, user=user, mounts=mounts, cpus=cpus), policy.host_config
    )
    body = {
        "Image": policy.image,
        "Hostname": name[:LONGEST_HOSTNAME],
        "User": user,
        "WorkingDir": working_directory,
        # The image's own entry point, health check and stop signal are not used: PID 1 is ours.
        "Entrypoint": list(command),
        "Cmd": [],
        "Healthcheck": {"Test": ["NONE"]},
        "StopSignal": "SIGTERM",
        "Env": [f"{key}={value}" for key, value in {"HOME": HOME, **environment}.items()],
        "Labels": {**policy.labels, **labels},
        "ExposedPorts": {f"{port.container}/tcp": {} for port in ports},
        "Tty": False,
        "OpenStdin": False,
        "AttachStdin": False,
        "AttachStdout": False,
        "AttachStderr": False,
        "HostConfig": host_config,
    }
    mode = str(host_config["NetworkMode"])
    if host_config.get("UTSMode") == "host" or mode.startswith("container:"):
        del body["Hostname"]  # the engine refuses a name for what is not the container's own
    return body


def _host_config(
    policy: ContainerPolicy, *, user: str, mounts: Sequence[Mount], cpus: int
) -> dict[str, Any]:
    period = policy.cpu_period or DEFAULT_CPU_PERIOD
    is_egress = policy.network is ContainerNetwork.EGRESS
    shares = {} if policy.cpu_shares is None else {"CpuShares": policy.cpu_shares}
    return {
        "Privileged": False,
        "CapDrop": ["ALL"],
        "SecurityOpt": [NO_NEW_PRIVILEGES],
        "ReadonlyRootfs": True,
        "IpcMode": "private",
        "Init": False,
        "AutoRemove": False,
        "NetworkMode": (ContainerNetwork.NONE if is_egress else policy.network).value,
        "Memory": policy.memory_bytes,
        "MemorySwap": policy.memory_bytes,
        "PidsLimit": policy.pids_limit,
        **shares,
        "CpuPeriod": period,
        "CpuQuota": policy.cpu_quota or cpus * period,
        "Tmpfs": _tmpfs(policy, user, {mount.target for mount in mounts}),
        "Mounts": [_mount(mount) for mount in mounts],
        "PortBindings": _bindings(policy),
        "LogConfig": LOG,
    }


def _tmpfs(policy: ContainerPolicy, user: str, taken: Iterable[str]) -> dict[str, str]:
    """The directories in memory by path; ours only where nothing else is mounted."""
    size = f"size={policy.memory_bytes // 2}"
    uid, _, gid = user.partition(":")
    owner = f"uid={uid}" if not gid else f"uid={uid},gid={gid}"
    # Engines give each the mode that the directory has in the image, whatever is asked: the owner can always write.
    confined = f"{CONFINED},{owner}"
    own = {
        TEMPORARY: f"rw,exec,{confined},{size},mode=1777",
        HOME: f"rw,exec,{confined},{size},mode=0700",
    }
    asked = {
        path: f"{confined},{options}" if options else confined
        for path, options in policy.tmpfs.items()
    }
    mounted = set(taken)
    return {path: one for path, one in {**own, **asked}.items() if path not in mounted}


def _mount(mount: Mount) -> dict[str, Any]:
    # Engines before version 25 leave the mounts below a read-only one writable: they are left out.
    options = {"Propagation": "rprivate", "NonRecursive": mount.is_read_only}
    return {
        "Type": "bind",
        "Source": mount.source,
        "Target": mount.target,
        "ReadOnly": mount.is_read_only,
        "BindOptions": options,
    }


def _bindings(policy: ContainerPolicy) -> dict[str, list[dict[str, str]]]:
    if policy.network is not ContainerNetwork.BRIDGE:
        return {}
    bindings: dict[str, list[dict[str, str]]] = {}
    for port in policy.ports:
        host = "" if port.host is None else str(port.host)
        bindings.setdefault(f"{port.container}/tcp", []).append(
            {"HostIp": "127.0.0.1", "HostPort": host}
        )
    return bindings


def _merged(own: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Our options with those of `host_config` over them, each under one spelling of its name."""
    names = {name.casefold(): name for name in own}
    given = {names.get(name.casefold(), name): value for name, value in extra.items()}
    merged = {**own, **given}
    for name in JOINED & given.keys():
        if isinstance(given[name], Mapping):
            merged[name] = {**own[name], **given[name]}
        elif given[name] is None:
            merged[name] = own[name]
    if "Mounts" in given:
        merged["Mounts"] = [*own["Mounts"], *(given["Mounts"] or ())]
    folded = {name.casefold() for name in given}
    if "memory" in folded and "memoryswap" not in folded:
        merged["MemorySwap"] = merged["Memory"]
    if "nanocpus" in folded:
        # The engine takes either form of the same limit.
        merged = {
            name: one for name, one in merged.items() if name not in {"CpuPeriod", "CpuQuota"}
        }
    return merged


def unsafe_mounts(policy: ContainerPolicy, mounts: Iterable[Mount]) -> list[Mount]:
    """The mounts that would give the machine away, and may not: ask when a container is made, with links followed.

    A link in a working directory can have been changed since the fleet was loaded.
    """
    if policy.is_unsafe:
        return []
    return [one for one in mounts if is_unsafe_source(one.source, policy.socket)]


def unsafe_settings(policy: ContainerPolicy) -> list[str]:
    """The settings of a policy that need `allow_unsafe`, as paths below `docker`: `user`, `volumes.0`, `host_config.CapAdd`."""
    volumes = [
        f"volumes.{place}"
        for place, volume in enumerate(policy.volumes)
        if is_unsafe_source(volume.source, policy.socket)
    ]
    undone = undone_hardening(policy.host_config, network=policy.network, socket=policy.socket)
    return [
        *(["user"] if is_root(policy.user) else []),
        *volumes,
        *(f"host_config.{name}" for name in undone),
    ]


def unsafe_notice(policy: ContainerPolicy) -> str | None:
    """The line for every start about a container that is not hardened; None for one that is."""
    unsafe = unsafe_settings(policy) if policy.is_unsafe else []
    if not unsafe:
        return None
    return f"its container is not hardened (docker.allow_unsafe): {', '.join(unsafe)}"
