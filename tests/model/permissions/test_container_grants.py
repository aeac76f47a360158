"""A container that gives an agent more waits for a person, and the agent keeps the one that was accepted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.containers.policy import (
    AllowedHost,
    ContainerNetwork,
    ContainerPolicy,
    Mount,
    PublishedPort,
)
from nightherd.model.permissions.grants import FleetGrants, grants_of, may_write
from nightherd.model.permissions.restrain import restrained
from nightherd.model.permissions.widening import narrowed, widenings
from nightherd.runtimes.claude.capabilities import SDK

HOME = "/fleet"
CACHE = Mount(source="/fleet/cache", target="/cache", is_read_only=True)
DATA = Mount(source="/data", target="/data")
POLICY = ContainerPolicy(
    image="agent:1",
    network=ContainerNetwork.EGRESS,
    allowed_hosts=(AllowedHost(name="api.example"),),
    private_hosts=(AllowedHost(name="mirror.lan"),),
    user="1000:1000",
    has_read_only_workspace=True,
    volumes=(CACHE, DATA),
    ports=(PublishedPort(container=80),),
    environment={"TOKEN": "secret"},
    labels={"team": "night"},
    cpu_quota=50_000,
    cpu_shares=512,
    host_config={"ShmSize": 1},
)
WIDER: dict[str, ContainerPolicy | None] = {
    "no container any more": None,
    "docker.image": replace(POLICY, image="agent:2"),
    "docker.socket": replace(POLICY, socket="/run/docker.sock"),
    "docker.network": replace(POLICY, network=ContainerNetwork.BRIDGE),
    "docker.allowed_hosts": replace(
        POLICY, allowed_hosts=(*POLICY.allowed_hosts, AllowedHost(name="evil.example"))
    ),
    "docker.private_hosts": replace(POLICY, private_hosts=POLICY.allowed_hosts),
    "docker.user": replace(POLICY, user=None),
    "docker.workspace_mode": replace(POLICY, has_read_only_workspace=False),
    "docker.volumes /etc:/etc": replace(
        POLICY, volumes=(CACHE, DATA, Mount(source="/etc", target="/etc"))
    ),
    "docker.volumes cache:/cache": replace(POLICY, volumes=(replace(CACHE, is_read_only=False),)),
    "docker.ports": replace(POLICY, ports=(PublishedPort(container=80, host=80),)),
    "docker.env TOKEN": replace(POLICY, environment={"TOKEN": "another"}),
    "docker.env MORE": replace(POLICY, environment={"TOKEN": "secret", "MORE": "x"}),
    "docker.labels": replace(POLICY, labels={"team": "night", "run.me": "x"}),
    "docker.host_config changed": replace(POLICY, host_config={}),
    "docker.host_config.Privileged undoes hardening": replace(
        POLICY, host_config={"Privileged": True}, is_unsafe=True
    ),
    "docker.memory": replace(POLICY, memory_bytes=POLICY.memory_bytes + 1),
    "docker.pids_limit": replace(POLICY, pids_limit=513),
    "docker.cpu_quota": replace(POLICY, cpu_quota=None),
    "docker.cpu_quota 500000 -> 5000000": replace(POLICY, cpu_period=10_000),
    "docker.cpu_shares": replace(POLICY, cpu_shares=None),
    "docker.max_containers": replace(POLICY, max_containers=6),
}
NARROWER = {
    "network": replace(POLICY, network=ContainerNetwork.NONE),
    "hosts": replace(POLICY, allowed_hosts=()),
    "private hosts": replace(POLICY, private_hosts=()),
    "volume": replace(POLICY, volumes=(CACHE,)),
    "volume read-only": replace(POLICY, volumes=(CACHE, replace(DATA, is_read_only=True))),
    "environment": replace(POLICY, environment={}),
    "memory": replace(POLICY, memory_bytes=8 << 20),
    "quota": replace(POLICY, cpu_quota=1_000),
    "tmpfs": replace(POLICY, tmpfs={"/scratch": ""}),
    "ephemeral": replace(POLICY, is_ephemeral=False),
}


def fleet(policy: ContainerPolicy | None, **changes: Any) -> Fleet:
    agent = Agent(name="a", runtime=SDK, working_directory="/fleet/desk", container=policy)
    return Fleet(file="/fleet/nightherd.yaml", agents={"a": replace(agent, **changes)})


def recorded(policy: ContainerPolicy | None) -> FleetGrants:
    """The grants of a container, written down and read again."""
    grants = grants_of(fleet(policy))
    return msgspec.json.decode(msgspec.json.encode(grants), type=FleetGrants)


def beyond(accepted: FleetGrants, policy: ContainerPolicy | None) -> list[str]:
    return [one.what for one in widenings(accepted, grants_of(fleet(policy)), HOME)]


@pytest.mark.parametrize("what", WIDER)
def test_a_container_that_gives_more_is_found_and_held_back(what: str) -> None:
    accepted, wanted = recorded(POLICY), WIDER[what]

    assert any(what in text for text in beyond(accepted, wanted))
    for before in (fleet(POLICY), None):
        held = restrained(fleet(wanted), accepted, before).agents.get("a")
        assert held is not None or before is None
        if held is not None:
            assert beyond(accepted, held.container) == []
            assert held.container is not None
    assert beyond(narrowed(accepted, grants_of(fleet(wanted)), HOME), wanted) != []


@pytest.mark.parametrize(
    "what",
    ["no container any more", "docker.image", "docker.env TOKEN", "docker.host_config changed"],
)
def test_the_container_of_before_stays_as_it_was(what: str) -> None:
    held = restrained(fleet(WIDER[what]), recorded(POLICY), fleet(POLICY))

    assert grants_of(held) == grants_of(fleet(POLICY))


def test_what_narrows_takes_effect_beside_what_waits() -> None:
    wanted = replace(POLICY, image="agent:2", pids_limit=9, network=ContainerNetwork.NONE)

    held = restrained(fleet(wanted), recorded(POLICY), fleet(POLICY)).agents["a"].container

    assert held is not None
    assert (held.image, held.pids_limit, held.network) == ("agent:1", 9, ContainerNetwork.NONE)


def test_a_mount_that_was_accepted_read_only_stays_so() -> None:
    wanted = replace(POLICY, volumes=(replace(CACHE, is_read_only=False),))

    held = restrained(fleet(wanted), recorded(POLICY)).agents["a"].container

    assert held is not None
    assert held.volumes == (CACHE,)


@pytest.mark.parametrize("what", NARROWER)
def test_a_container_that_gives_less_needs_nobody(what: str) -> None:
    accepted, wanted = recorded(POLICY), NARROWER[what]

    assert beyond(accepted, wanted) == []
    assert restrained(fleet(wanted), accepted).agents["a"].container == wanted


def test_what_was_given_up_is_not_accepted_any_more() -> None:
    less = replace(POLICY, volumes=(), environment={}, network=ContainerNetwork.NONE)
    wider = replace(less, image="agent:2")

    accepted = narrowed(recorded(POLICY), grants_of(fleet(wider)), HOME)

    assert {text.split(" ")[0] for text in beyond(accepted, POLICY)} == {
        "docker.volumes",
        "docker.env",
        "docker.network",
    }


def test_after_a_restart_a_container_is_made_of_what_is_on_record() -> None:
    plain = replace(POLICY, host_config={})

    held = restrained(fleet(None), recorded(plain)).agents["a"].container

    assert held is not None
    assert (held.image, held.network, held.volumes) == (plain.image, plain.network, plain.volumes)
    assert held.environment == {}, "its values are on no record"


def test_an_agent_whose_options_for_the_engine_are_on_no_record_stays_away() -> None:
    assert restrained(fleet(None), recorded(POLICY)).agents == {}


def test_an_agent_of_the_host_gets_a_container_at_once() -> None:
    policy = replace(POLICY, volumes=(), environment={}, labels={})

    assert beyond(recorded(None), policy) == []


def test_what_only_the_engine_can_give_to_an_agent_of_the_host_waits() -> None:
    unsafe = replace(POLICY, user="0", host_config={"Privileged": True}, is_unsafe=True)
    accepted = recorded(None)

    found = beyond(accepted, unsafe)
    held = restrained(fleet(unsafe), accepted).agents["a"].container

    assert "docker.volumes /data:/data" in found
    assert "docker.user undoes hardening" in found
    assert "docker.host_config.Privileged undoes hardening" in found
    assert held is not None, "it gets the container without them"
    assert (held.volumes, held.user, held.host_config, held.is_unsafe) == ((), None, {}, False)


def test_no_secret_is_on_record() -> None:
    assert b"secret" not in msgspec.json.encode(grants_of(fleet(POLICY)))


def test_a_fleet_that_was_moved_has_the_same_container() -> None:
    moved = Mount(source="/other/cache", target="/cache", is_read_only=True)
    agent = fleet(replace(POLICY, volumes=(moved, DATA)), working_directory="/other/desk")

    assert grants_of(replace(agent, file="/other/nightherd.yaml")) == grants_of(fleet(POLICY))


def test_an_agent_may_write_a_fleet_file_that_is_mounted_into_its_container() -> None:
    grants = recorded(replace(POLICY, volumes=(Mount(source="/fleet", target="/f"),)))

    assert may_write(grants, HOME, "/fleet/nightherd.yaml")
    assert not may_write(recorded(POLICY), HOME, "/fleet/nightherd.yaml")


CANDIDATES = st.sampled_from([POLICY, None, *WIDER.values(), *NARROWER.values(), ContainerPolicy()])


@given(CANDIDATES, CANDIDATES, CANDIDATES)
def test_whatever_was_accepted_nothing_beyond_it_is_given(
    known: ContainerPolicy | None, wanted: ContainerPolicy | None, before: ContainerPolicy | None
) -> None:
    accepted = recorded(known)
    held = restrained(fleet(wanted), accepted, fleet(before)).agents.get("a")
    stays = narrowed(accepted, grants_of(fleet(wanted)), HOME)

    if held is not None:
        assert beyond(accepted, held.container) == []
    assert list(widenings(accepted, stays, HOME)) == []
