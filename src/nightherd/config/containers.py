"""The container of an agent: `docker` as the engine needs it, and what is wrong with it as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from nightherd.config.merge import real_path
from nightherd.config.report import Findings
from nightherd.config.schema.isolation import UNIX, FleetDocker
from nightherd.config.validate import Target
from nightherd.config.working_directory import directories_of
from nightherd.files.yaml_nodes import MappingNode, ScalarNode, SequenceNode, problem_at
from nightherd.model.containers.hardening import unsafe_notice, unsafe_settings
from nightherd.model.containers.hosts import parse_allowed_host
from nightherd.model.containers.mounts import (
    is_unsafe_source,
    normal,
    parse_port,
    parse_tmpfs,
    parse_user,
    parse_volume,
)
from nightherd.model.containers.policy import ContainerNetwork, ContainerPolicy
from nightherd.model.problem import Problem, Severity

KEY = "docker"
UNSAFE_DIRECTORY = "in a container, this directory would give the agent control of this machine"
DIRECTORY_HINT = "name another one, or set docker.allow_unsafe: true in the fleet file"
UNSAFE_HINT = "leave it out, or set allow_unsafe: true beside it in the fleet file"


def resolve_container(docker: FleetDocker | None) -> ContainerPolicy | None:
    """The container that an agent runs in; None for one that runs on this machine itself."""
    return None if docker is None or not docker.enabled else resolve_policy(docker)


def resolve_policy(docker: FleetDocker) -> ContainerPolicy:
    """What the section says, switched on or not."""
    return ContainerPolicy(
        image=docker.image,
        socket=None if docker.socket is None else docker.socket.removeprefix(UNIX),
        is_ephemeral=docker.ephemeral,
        max_containers=docker.max_containers,
        network=ContainerNetwork(docker.network),
        allowed_hosts=tuple(dict.fromkeys(parse_allowed_host(one) for one in docker.allowed_hosts)),
        private_hosts=tuple(dict.fromkeys(parse_allowed_host(one) for one in docker.private_hosts)),
        user=None if docker.user is None else parse_user(docker.user),
        memory_bytes=docker.memory,
        cpu_shares=docker.cpu_shares,
        cpu_period=docker.cpu_period,
        cpu_quota=docker.cpu_quota,
        pids_limit=docker.pids_limit,
        has_read_only_workspace=docker.workspace_mode == "ro",
        tmpfs=dict(parse_tmpfs(one) for one in docker.tmpfs),
        labels=docker.labels,
        volumes=tuple(parse_volume(one) for one in docker.volumes),
        environment=docker.env,
        ports=tuple(parse_port(one) for one in docker.ports),
        host_config=_plain(docker.host_config),
        is_unsafe=docker.allow_unsafe,
    )


def _plain(value: Any) -> Any:
    """Options for the engine as JSON has them."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [_plain(inner) for inner in value]
    return value


def check_container(
    docker: FleetDocker | None, agent: MappingNode, findings: Findings, *, path: str, root: str
) -> None:
    """Report keys that contradict each other or undo hardening, at their places; `root` is where the agent works."""
    node = agent.get(KEY)
    if docker is None or not isinstance(node, MappingNode):
        return
    policy = resolve_policy(docker)
    findings.extend(_contradictions(policy, docker, node, f"{path}.{KEY}", root))
    notice = unsafe_notice(policy)
    if notice is not None:
        findings.add(
            _problem(node, "allow_unsafe", f"{path}.{KEY}", notice, severity=Severity.NOTICE)
        )
    if policy.is_unsafe:
        return
    if docker.enabled:
        findings.extend(_unsafe_directories(policy, agent, path, root))
    followed = tuple(replace(one, source=real_path(one.source)) for one in policy.volumes)
    found = (*unsafe_settings(policy), *unsafe_settings(replace(policy, volumes=followed)))
    for key in dict.fromkeys(found):
        findings.add(_problem(node, key, f"{path}.{KEY}", _why_unsafe(key), UNSAFE_HINT))


def _unsafe_directories(
    policy: ContainerPolicy, agent: MappingNode, path: str, root: str
) -> Iterator[Problem]:
    """One problem for each directory of the agent, which are mounted too, that a container may not have."""
    named = dict(_directories(agent))
    if not is_safe(root, policy) and root not in (one.text for one in named.values()):
        entry = agent.entries[KEY]
        yield problem_at(entry.key, UNSAFE_DIRECTORY, path=path, hint=DIRECTORY_HINT)
    for where, node in named.items():
        if not is_safe(node.text, policy):
            yield problem_at(node, UNSAFE_DIRECTORY, path=f"{path}.{where}", hint=DIRECTORY_HINT)


def is_safe(source: str, policy: ContainerPolicy) -> bool:
    """Whether a path of the host, and what it is a link to, may be in the container."""
    return not any(is_unsafe_source(one, policy.socket) for one in (source, real_path(source)))


def _directories(agent: MappingNode) -> Iterator[tuple[str, ScalarNode]]:
    """Every path that the agent names and its container gets."""
    for where, entry in directories_of(agent):
        root = entry.value.get("root") if isinstance(entry.value, MappingNode) else entry.value
        if isinstance(root, ScalarNode):
            yield where, root
    for key in ("add_dirs", "plugins"):
        section = agent.get(key)
        for place, item in enumerate(section.items if isinstance(section, SequenceNode) else ()):
            named = item.get("path") if isinstance(item, MappingNode) else item
            if isinstance(named, ScalarNode):
                yield f"{key}.{place}", named


def _why_unsafe(key: str) -> str:
    section, _, name = key.partition(".")
    if section == "volumes":
        return "this mount would give the agent control of this machine"
    if section == "user":
        return "an agent does not run as root in its container"
    return f"{name!r} would undo the hardening of the container"


def _contradictions(
    policy: ContainerPolicy, docker: FleetDocker, node: MappingNode, path: str, root: str
) -> Iterator[Problem]:
    network = policy.network
    for key, hosts in (
        ("allowed_hosts", policy.allowed_hosts),
        ("private_hosts", policy.private_hosts),
    ):
        if hosts and network is not ContainerNetwork.EGRESS:
            message = f"{key!r} needs network: egress; the network is {network}"
            yield _problem(node, key, path, message)
    if policy.ports and network is not ContainerNetwork.BRIDGE:
        message = f"'ports' are not published with network: {network}"
        yield _problem(node, "ports", path, message, severity=Severity.NOTICE)
    targets = [
        *((f"tmpfs.{at}", parse_tmpfs(one)[0]) for at, one in enumerate(docker.tmpfs)),
        *((f"volumes.{at}", one.target) for at, one in enumerate(policy.volumes)),
    ]
    times = Counter(target for _, target in targets)
    for key, target in targets:
        if times[target] > 1:
            yield _problem(node, key, path, "this path is mounted more than once")
        elif target == normal(root):
            yield _problem(node, key, path, "the working directory is mounted there")


def _problem(
    docker: MappingNode,
    key: str,
    path: str,
    message: str,
    hint: str | None = None,
    severity: Severity = Severity.ERROR,
) -> Problem:
    """A problem with the setting at `key`: at the key itself, or at the item of a list."""
    steps = tuple(int(step) if step.isdigit() else step for step in key.split("."))
    target = Target(docker, steps)
    where = target.key or target.node
    return problem_at(where, message, path=f"{path}.{key}", hint=hint, severity=severity)
