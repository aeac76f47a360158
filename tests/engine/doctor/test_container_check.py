"""The doctor's check of the container engine: only for agents that run in containers, and a problem without one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from docker_engine import DockerEngine
from nightherd.engine.doctor.night_checks import container_agents
from nightherd.model.agents.agent import Agent
from nightherd.model.containers.policy import ContainerPolicy
from nightherd.model.doctor import EngineFacts, Level, engine_finding
from nightherd.wiring.containers import engine_facts


def agent(name: str, container: ContainerPolicy | None) -> Agent:
    return cast("Agent", SimpleNamespace(name=name, container=container))


def test_agents_are_grouped_by_the_socket_of_their_engine() -> None:
    agents = [
        agent("a", ContainerPolicy()),
        agent("b", None),
        agent("c", ContainerPolicy(socket="/s")),
        agent("d", ContainerPolicy()),
    ]

    assert container_agents(agents) == {None: ["a", "d"], "/s": ["c"]}


def test_engine_that_is_there_is_described(docker_engine: DockerEngine) -> None:
    facts = engine_facts(docker_engine.socket_path, {})

    assert isinstance(facts, EngineFacts)
    finding = engine_finding(facts, ["a"])
    assert finding.level is Level.OK
    assert f"Docker {facts.version} at {docker_engine.socket_path}, as root, cgroup v" in (
        finding.message
    )


def test_engine_that_is_missing_is_a_problem() -> None:
    finding = engine_finding(engine_facts("/nowhere/s", {}), ["a", "b"])

    assert finding.level is Level.PROBLEM
    assert "no container engine at /nowhere/s" in finding.message
    assert finding.remedy is not None


@pytest.mark.parametrize(
    ("version", "info", "expected"),
    [
        (
            {"Version": "4.3.1", "Components": [{"Name": "Podman Engine"}]},
            {"CgroupVersion": "2", "SecurityOptions": ["name=rootless"]},
            ("Podman", "4.3.1", "2", True),
        ),
        ({"Version": "27.0"}, {}, ("Docker", "27.0", None, False)),
    ],
)
def test_facts_of_other_engines(
    version: dict[str, Any], info: dict[str, Any], expected: tuple[str, str, str | None, bool]
) -> None:
    facts = EngineFacts.of("/s", version, info)

    assert (facts.name, facts.version, facts.cgroup_version, facts.is_rootless) == expected


def test_engine_that_remaps_users_or_limits_nothing_is_not_fine() -> None:
    remaps = EngineFacts.of("/s", {}, {"SecurityOptions": ["name=userns"]})
    unlimited = EngineFacts.of("/s", {}, {"MemoryLimit": False, "SecurityOptions": ["rootless"]})

    problem, warning = (engine_finding(facts, ["a"]) for facts in (remaps, unlimited))

    assert problem.level is Level.PROBLEM
    assert "userns-remap is not supported" in problem.message
    assert warning.level is Level.WARNING
    assert "does not limit memory" in warning.message
    assert "cgroup v2" in str(warning.remedy)
