"""The doctor's check of the container engine: only for agents that run in containers, and a problem without one."""

from __future__ import annotations

import json
import socket
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from docker_engine import DockerEngine
from nightherd.engine.doctor.night_checks import container_agents
from nightherd.model.agents.agent import Agent
from nightherd.model.containers.image import ClaudeSource
from nightherd.model.containers.policy import DEFAULT_IMAGE, ContainerPolicy
from nightherd.model.doctor import EngineFacts, ImageFacts, Level, engine_finding, image_finding
from nightherd.next_step import Action, NextStep
from nightherd.runtimes.container.engine import Engine
from nightherd.runtimes.container.image import ImagePlan, build_image
from nightherd.wiring.containers import engine_facts
from runtimes.container.container_herd import ContainerHerd


def agent(name: str, container: ContainerPolicy | None) -> Agent:
    return cast("Agent", SimpleNamespace(name=name, container=container))


def test_agents_are_grouped_by_the_socket_of_their_engine() -> None:
    agents = [
        agent("a", ContainerPolicy()),
        agent("b", None),
        agent("c", ContainerPolicy(socket="/s")),
        agent("d", ContainerPolicy()),
    ]

    found = container_agents(agents)

    assert {socket: [one.name for one in found[socket]] for socket in found} == {
        None: ["a", "d"],
        "/s": ["c"],
    }


def test_engine_that_is_there_is_described(docker_engine: DockerEngine) -> None:
    facts = engine_facts(docker_engine.socket_path, {})

    assert isinstance(facts, EngineFacts)
    finding = engine_finding(facts, ["a"])
    assert finding.level is Level.OK
    assert f"Docker {facts.version} at {docker_engine.socket_path}, as root, cgroup v" in (
        finding.message
    )


def test_engine_that_does_not_answer_does_not_hold_up_the_doctor() -> None:
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as listener:
        path = f"{short}/s"
        listener.bind(path)
        listener.listen()
        finding = engine_finding(engine_facts(path, {}, call_s=0.2), ["a"])

    assert finding.level is Level.PROBLEM
    assert "no answer within 0.2 s" in finding.message


def test_images_are_asked_about_and_their_claude_is_compared(
    docker_engine: DockerEngine, container_image: str, tmp_path: Path
) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\necho '2.1.7 (Claude Code)'\n")
    plan = ImagePlan(
        tag="nightherd/test-doctor:1",
        base=container_image,
        claude=ClaudeSource.BUNDLED,
        claude_program=program,
        claude_version="2.1.7",
        nightherd_version="0",
    )

    async def build() -> None:
        async with Engine(docker_engine.socket_path) as engine:
            await build_image(engine, plan, lambda _: None)

    anyio.run(build)
    images = [plan.tag, container_image, "no/such:image"]
    facts = engine_facts(docker_engine.socket_path, {}, images)

    assert isinstance(facts, EngineFacts)
    built, other, missing = (facts.images[image] for image in images)
    assert (built, other, missing) == (ImageFacts(claude="2.1.7"), ImageFacts(), None)
    skewed = image_finding(plan.tag, built, ["a"], "2.1.8")
    assert skewed.level is Level.WARNING
    assert "the image has claude 2.1.7, this machine has 2.1.8" in skewed.message
    for claude in ("2.1.7", None):
        assert image_finding(plan.tag, built, ["a"], claude).level is Level.OK
    assert image_finding(container_image, other, ["a"], "2.1.8").level is Level.OK
    absent = image_finding("no/such:image", missing, ["a"], None)
    assert absent.level is Level.PROBLEM
    assert absent.remedy == "docker pull no/such:image, or build it with the tag no/such:image"
    default = image_finding(DEFAULT_IMAGE, None, ["a"], None)
    assert default.remedy is None
    for finding in (skewed, absent, default):
        assert finding.next_step == NextStep(Action.BUILD_IMAGE)


def test_doctor_looks_at_the_image_and_not_at_the_claude_of_this_machine(
    docker_engine: DockerEngine, container_image: str, tmp_path: Path
) -> None:
    agents: list[dict[str, Any]] = [
        {"name": "a", "runtime": "cli"},
        {"name": "b", "runtime": "cli", "docker": {"image": "no/such:image"}},
    ]
    environment = {"PATH": "/nowhere"}
    herd = ContainerHerd(tmp_path, docker_engine, container_image, agents, environment=environment)
    done = herd.nightherd("doctor", "--json")
    checks = {one["name"]: one for one in json.loads(done.stdout)["data"]["checks"]}
    claude, containers = checks["claude"]["findings"], checks["containers"]

    assert f"a: image {container_image}" in containers["notes"]
    assert [one["message"] for one in containers["findings"]] == [
        "b: the container engine has no image no/such:image"
    ]
    assert [one["message"] for one in claude] == ["a, b (cli): no Claude login was found"]


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
