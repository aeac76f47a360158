"""Night checks: whether the fleet's agents can be run unattended on this machine, as checks of the doctor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

import msgspec

from nightherd.engine.doctor.doctor import Check
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.runtime import LoginKind, RuntimeName
from nightherd.model.doctor import (
    ClaudeFacts,
    EngineFacts,
    Finding,
    claude_findings,
    clock_findings,
    engine_finding,
    git_findings,
    image_finding,
    key_finding,
    login_findings,
    named,
    parse_version,
    runtime_finding,
)


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """How the checks find out about the machine."""

    claude_facts: Callable[[str], ClaudeFacts]
    why_no_model: Callable[[Agent], tuple[str, str | None] | None]
    """Why the model of an agent with a provider's key cannot be asked, and what to do; None when it can."""
    why_not_installed: Callable[[RuntimeName], tuple[str, str | None] | None]
    """Why a runtime cannot run here, and what to do; None when it can."""
    engine_facts: Callable[[str | None, Iterable[str]], EngineFacts | tuple[str, str | None]]
    """What the container engine at a socket, or the one found, says of itself and of images; or why there is none, and what to do."""
    git_version: Callable[[], str | None]
    is_clock_synchronised: Callable[[], bool | None]
    last_recorded: Callable[[], datetime | None]


def night_checks(agents: Iterable[Agent], machine: Machine, now: datetime) -> list[Check]:
    """The checks that make sense for these agents."""
    chosen = list(agents)
    checks = [
        Check("git", "git", lambda: git_findings(machine.git_version())),
        Check(
            "clock",
            "clock",
            lambda: clock_findings(now, machine.last_recorded(), machine.is_clock_synchronised()),
        ),
    ]
    with_package = [agent for agent in chosen if agent.runtime.package is not None]
    if with_package:
        checks.append(Check("runtimes", "runtimes", partial(_runtimes, with_package, machine)))
    with_claude = [agent for agent in chosen if agent.runtime.needs_claude]
    if with_claude:
        checks.append(Check("claude", "Claude Code", partial(_claude, with_claude, machine)))
    by_socket = container_agents(chosen)
    if by_socket:
        checks.append(Check("containers", "containers", partial(_containers, by_socket, machine)))
    with_keys = [agent for agent in chosen if agent.runtime.login is LoginKind.PROVIDER_KEY]
    if with_keys:
        checks.append(Check("keys", "keys of models", partial(_keys, with_keys, machine)))
    return checks


def _runtimes(agents: Sequence[Agent], machine: Machine) -> Iterator[Finding]:
    for name in sorted({agent.runtime.name for agent in agents}):
        names = [agent.name for agent in agents if agent.runtime.name == name]
        yield runtime_finding(name, names, machine.why_not_installed(name))


def _claude(agents: Sequence[Agent], machine: Machine) -> Iterator[Finding]:
    runtimes = {agent.runtime.name: agent.runtime for agent in agents}
    for name, runtime in sorted(runtimes.items()):
        facts = machine.claude_facts(name)
        of_runtime = [agent for agent in agents if agent.runtime.name == name]
        here = [agent.name for agent in of_runtime if agent.container is None]
        inside = [agent.name for agent in of_runtime if agent.container is not None]
        if here:
            yield from claude_findings(facts, here, runtime)
        if inside:  # their `claude` is that of the image
            yield from login_findings(facts, named(inside), runtime)


def container_agents(agents: Iterable[Agent]) -> dict[str | None, list[Agent]]:
    """Return the agents that run in containers, by the socket of the engine; None for any engine."""
    by_socket: dict[str | None, list[Agent]] = {}
    for agent in agents:
        policy = agent.container
        if policy is not None:
            by_socket.setdefault(policy.socket, []).append(agent)
    return by_socket


def _containers(
    by_socket: Mapping[str | None, Sequence[Agent]], machine: Machine
) -> Iterator[Finding]:
    for socket, agents in by_socket.items():
        by_image: dict[str, list[Agent]] = {}
        for agent in agents:
            by_image.setdefault(agent.container.image if agent.container else "", []).append(agent)
        facts = machine.engine_facts(socket, by_image)
        yield engine_finding(facts, [agent.name for agent in agents])
        if not isinstance(facts, EngineFacts):
            continue
        for image, users in by_image.items():
            names = [agent.name for agent in users]
            yield image_finding(image, facts.images.get(image), names, _host_claude(users, machine))


def _host_claude(agents: Sequence[Agent], machine: Machine) -> str | None:
    """The version of this machine's `claude`, where one of the agents needs one; None where none does, or it is unknown."""
    runtimes = [agent.runtime.name for agent in agents if agent.runtime.needs_claude]
    version = parse_version(machine.claude_facts(runtimes[0]).version or "") if runtimes else None
    return ".".join(map(str, version)) if version is not None else None


def _keys(agents: Sequence[Agent], machine: Machine) -> Iterator[Finding]:
    for agent in agents:
        refusal = machine.why_no_model(agent)
        if refusal is not None:
            yield key_finding(agent.name, agent.model, *refusal)
