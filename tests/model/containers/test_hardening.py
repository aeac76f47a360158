"""What the engine is asked for, and which of its options would undo hardening."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.model.containers.hardening import (
    create_body,
    unsafe_mounts,
    unsafe_notice,
    unsafe_settings,
)
from nightherd.model.containers.policy import (
    ContainerNetwork,
    ContainerPolicy,
    Mount,
    PublishedPort,
)
from nightherd.model.containers.undone import RULES, undone_hardening

WORK = Mount(source="/srv/work", target="/srv/work")


def body(policy: ContainerPolicy, **changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "name": "night-1",
        "user": "1000:100",
        "mounts": [WORK, *policy.volumes],
        "working_directory": "/srv/work",
        "command": ["python3", "-I", "/run/nightherd/init.py"],
        "labels": {"nightherd.fleet": "f"},
        "environment": {"LANG": "C.UTF-8"},
        "cpus": 4,
    }
    return create_body(policy, **{**given, **changes})


def options(policy: ContainerPolicy, **changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = body(policy, **changes)["HostConfig"]
    return found


def test_a_container_is_hardened_by_default() -> None:
    found = options(ContainerPolicy())

    assert found["CapDrop"] == ["ALL"]
    assert found["SecurityOpt"] == ["no-new-privileges:true"]
    assert (found["ReadonlyRootfs"], found["Privileged"]) == (True, False)
    assert (found["Init"], found["AutoRemove"]) == (False, False)
    assert found["IpcMode"] == "private"
    assert found["Memory"] == found["MemorySwap"] == 2 * 1024**3
    assert found["PidsLimit"] == 512
    assert (found["CpuPeriod"], found["CpuQuota"]) == (100_000, 400_000)
    assert found["LogConfig"]["Config"]["max-size"]
    assert not found.keys() & {"CapAdd", "Devices", "OomScoreAdj", "PidMode", "UsernsMode"}
    assert undone_hardening(found) == []


def test_only_what_is_mounted_can_be_written() -> None:
    found = options(ContainerPolicy(memory_bytes=1024**3, tmpfs={"/scratch": "size=64m"}))

    assert found["Tmpfs"] == {
        "/tmp": "rw,exec,nosuid,nodev,uid=1000,gid=100,size=536870912,mode=1777",
        "/home/agent": "rw,exec,nosuid,nodev,uid=1000,gid=100,size=536870912,mode=0700",
        "/scratch": "nosuid,nodev,uid=1000,gid=100,size=64m",
    }
    assert found["Mounts"] == [
        {
            "Type": "bind",
            "Source": "/srv/work",
            "Target": "/srv/work",
            "ReadOnly": False,
            "BindOptions": {"Propagation": "rprivate", "NonRecursive": False},
        }
    ]


def test_a_read_only_mount_brings_no_mounts_below_it_that_could_be_written() -> None:
    volume = Mount(source="/data", target="/data", is_read_only=True)

    mount = options(ContainerPolicy(volumes=(volume,)))["Mounts"][1]

    assert mount["ReadOnly"] is True
    assert mount["BindOptions"]["NonRecursive"] is True


def test_a_mount_takes_the_place_of_a_directory_in_memory() -> None:
    volume = Mount(source="/srv/home", target="/home/agent")

    assert list(options(ContainerPolicy(volumes=(volume,)))["Tmpfs"]) == ["/tmp"]


@pytest.mark.parametrize(
    ("network", "mode"),
    [
        (ContainerNetwork.NONE, "none"),
        (ContainerNetwork.EGRESS, "none"),
        (ContainerNetwork.BRIDGE, "bridge"),
        (ContainerNetwork.HOST, "host"),
    ],
)
def test_ports_are_published_on_loopback_and_only_on_a_bridge(
    network: ContainerNetwork, mode: str
) -> None:
    ports = (PublishedPort(container=80, host=8080), PublishedPort(container=9000))
    made = body(ContainerPolicy(network=network, ports=ports))

    assert made["HostConfig"]["NetworkMode"] == mode
    expected = {
        "80/tcp": [{"HostIp": "127.0.0.1", "HostPort": "8080"}],
        "9000/tcp": [{"HostIp": "127.0.0.1", "HostPort": ""}],
    }
    is_bridge = network is ContainerNetwork.BRIDGE
    assert made["HostConfig"]["PortBindings"] == (expected if is_bridge else {})
    assert made["ExposedPorts"].keys() == (expected.keys() if is_bridge else set())


def test_nothing_of_the_image_starts_beside_our_command() -> None:
    made = body(ContainerPolicy(image="x:1"))

    assert made["Image"] == "x:1"
    assert made["Entrypoint"] == ["python3", "-I", "/run/nightherd/init.py"]
    assert made["Cmd"] == []
    assert made["Healthcheck"] == {"Test": ["NONE"]}
    assert made["User"] == "1000:100"
    assert made["WorkingDir"] == "/srv/work"
    assert made["Env"] == ["HOME=/home/agent", "LANG=C.UTF-8"]


def test_our_labels_win_and_variables_of_agents_are_not_in_the_body() -> None:
    policy = ContainerPolicy(
        labels={"team": "night", "nightherd.fleet": "evil"}, environment={"TOKEN": "secret"}
    )

    made = body(policy)

    assert made["Labels"] == {"team": "night", "nightherd.fleet": "f"}
    assert "secret" not in json.dumps(made)


def test_limits_of_the_policy_are_those_of_the_container() -> None:
    found = options(
        ContainerPolicy(
            cpu_shares=512, cpu_period=50_000, cpu_quota=25_000, pids_limit=9, memory_bytes=8 << 20
        )
    )

    assert (found["CpuShares"], found["CpuPeriod"], found["CpuQuota"]) == (512, 50_000, 25_000)
    assert (found["PidsLimit"], found["Memory"], found["MemorySwap"]) == (9, 8 << 20, 8 << 20)


def test_options_for_the_engine_win_and_have_one_spelling() -> None:
    extra = {
        "memory": 1 << 30,
        "Tmpfs": {"/more": ""},
        "mounts": [{"Type": "bind", "Source": "/a", "Target": "/a"}],
        "NanoCpus": 500_000_000,
        "ShmSize": 1 << 20,
        "PortBindings": None,
    }

    found = options(ContainerPolicy(host_config=extra))

    assert (found["Memory"], found["MemorySwap"]) == (1 << 30, 1 << 30)
    assert list(found["Tmpfs"]) == ["/tmp", "/home/agent", "/more"]
    assert [mount["Source"] for mount in found["Mounts"]] == ["/srv/work", "/a"]
    assert not {"CpuQuota", "CpuPeriod", "memory", "mounts"} & found.keys()
    assert found["ShmSize"] == 1 << 20
    assert found["PortBindings"] == {}


UNDONE: list[tuple[str, Any]] = [
    ("Privileged", True),
    ("privileged", True),
    ("PRIVILEGED", True),
    ("CapAdd", ["SYS_ADMIN"]),
    ("CapDrop", []),
    ("CapDrop", None),
    ("CapDrop", ["NET_RAW"]),
    ("capdrop", ["NET_RAW"]),
    ("Capabilities", ["CAP_SYS_ADMIN"]),
    ("SecurityOpt", []),
    ("SecurityOpt", None),
    ("\u017fecurityOpt", ["seccomp=unconfined"]),  # a long s, which engines read as s
    ("SecurityOpt", ["no-new-privileges", "seccomp=unconfined"]),
    ("SecurityOpt", ["no-new-privileges:false"]),
    ("SecurityOpt", ["no-new-privileges", "apparmor=unconfined"]),
    ("SecurityOpt", ["no-new-privileges", "systempaths=unconfined"]),
    ("ReadonlyRootfs", False),
    ("ReadonlyRootfs", None),
    ("MaskedPaths", []),
    ("ReadonlyPaths", []),
    ("Devices", [{"PathOnHost": "/dev/sda"}]),
    ("DeviceCgroupRules", ["c *:* rwm"]),
    ("DeviceRequests", [{"Count": -1}]),
    ("PidMode", "host"),
    ("PidMode", "container:x"),
    ("IpcMode", "host"),
    ("IpcMode", "shareable"),
    ("UTSMode", "host"),
    ("UsernsMode", "host"),
    ("CgroupnsMode", "host"),
    ("CgroupParent", "/"),
    ("Cgroup", "container:x"),
    ("Runtime", "other"),
    ("NetworkMode", "host"),
    ("NetworkMode", "container:x"),
    ("PidsLimit", 0),
    ("PidsLimit", -1),
    ("PidsLimit", None),
    ("Memory", 0),
    ("MemorySwap", -1),
    ("CpuQuota", -1),
    ("NanoCpus", 0),
    ("OomKillDisable", True),
    ("OomScoreAdj", -500),
    ("GroupAdd", ["root"]),
    ("GroupAdd", [0]),
    ("VolumesFrom", ["other"]),
    ("VolumeDriver", "x"),
    ("PublishAllPorts", True),
    ("PortBindings", {"80/tcp": [{"HostPort": "80"}]}),
    ("PortBindings", {"80/tcp": [{"hostip": "0.0.0.0"}]}),
    ("Init", True),
    ("AutoRemove", True),
    ("RestartPolicy", {"name": "always"}),
    ("Binds", ["/:/host"]),
    ("Binds", ["/var/run/docker.sock:/x.sock"]),
    ("Binds", ["/data:/data:rw,shared"]),
    ("Binds", ["/data:/proc/x"]),
    ("Mounts", [{"type": "bind", "source": "/", "target": "/host"}]),
    ("Mounts", [{"Type": "bind", "Source": "/run/docker.sock", "Target": "/s"}]),
    ("Mounts", [{"Type": "bind", "Source": "/a", "Target": "/run/nightherd"}]),
    ("Mounts", [{"Type": "bind", "Source": "/a", "Target": "/a",
                 "BindOptions": {"Propagation": "shared"}}]),
    ("Mounts", [{"Type": "volume", "Source": "v", "Target": "/v", "VolumeOptions": {
        "DriverConfig": {"Name": "local", "Options": {"o": "bind", "device": "/"}}}}]),
    ("Mounts", [{"Type": "tmpfs", "Target": "/t", "TmpfsOptions": {"Options": [["suid"]]}}]),
    ("Mounts", "/:/host"),
    ("Tmpfs", {"/proc": ""}),
    ("Tmpfs", {"/x": "size=1m,suid"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), UNDONE)
def test_an_option_that_undoes_hardening_is_found(name: str, value: Any) -> None:
    assert undone_hardening({"ShmSize": 1, name: value}) == [name]


def test_every_rule_has_a_case() -> None:
    assert RULES.keys() <= {name.casefold() for name, _ in UNDONE}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Privileged", False),
        ("Privileged", None),
        ("CapAdd", []),
        ("CapDrop", ["all"]),
        ("SecurityOpt", ["no-new-privileges"]),
        ("ReadonlyRootfs", True),
        ("PidsLimit", 5),
        ("Memory", 1 << 30),
        ("IpcMode", "none"),
        ("Runtime", "runc"),
        ("NetworkMode", "my-network"),
        ("OomScoreAdj", 500),
        ("GroupAdd", ["100"]),
        ("RestartPolicy", {"Name": "no"}),
        ("PortBindings", {"80/tcp": [{"HostIp": "127.0.0.1", "HostPort": "1"}]}),
        ("Binds", ["/data:/data:ro"]),
        ("Mounts", [{"Type": "volume", "Source": "cache", "Target": "/cache"}]),
        ("Tmpfs", {"/x": "size=1m"}),
        ("Ulimits", [{"Name": "nofile", "Soft": 1024, "Hard": 1024}]),
        ("SomethingNew", {"a": 1}),
    ],
)
def test_other_options_pass(name: str, value: Any) -> None:
    assert undone_hardening({name: value}) == []


@pytest.mark.parametrize("network", [ContainerNetwork.NONE, ContainerNetwork.EGRESS])
def test_an_option_may_not_open_a_network_that_is_closed(network: ContainerNetwork) -> None:
    assert undone_hardening({"NetworkMode": "bridge"}, network=network) == ["NetworkMode"]
    assert undone_hardening({"networkmode": "none"}, network=network) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
NAMES = st.sampled_from([name for name, _ in UNDONE]) | st.text(max_size=8)
HARDENED = {
    "Privileged": (False, None),
    "ReadonlyRootfs": (True,),
    "Init": (False, None, 0),
    "IpcMode": ("private", "none"),
}


@given(st.dictionaries(NAMES, JSON, max_size=5))
def test_any_options_are_judged_and_those_that_pass_leave_it_hardened(
    extra: dict[str, Any],
) -> None:
    undone = undone_hardening(extra)
    kept = {name: value for name, value in extra.items() if name not in undone}

    found = options(ContainerPolicy(host_config=kept))

    folded = [name.casefold() for name in found]
    assert len(set(folded)) == len(folded) or len({n.casefold() for n in kept}) < len(kept)
    assert "ALL" in [str(one).upper() for one in found["CapDrop"]]
    assert all(not found[name] if False in right else found[name] in right
               for name, right in HARDENED.items())  # fmt: skip
    assert found["PidsLimit"] > 0
    assert found["Memory"] > 0
    assert WORK.source in [one.get("Source") for one in found["Mounts"]]


def test_what_needs_allow_unsafe_is_named_and_said() -> None:
    policy = ContainerPolicy(
        user="0:0",
        socket="/srv/engine/e.sock",
        volumes=(
            Mount(source="/data", target="/data"),
            Mount(source="/srv/engine", target="/e"),
        ),
        host_config={"Privileged": True, "ShmSize": 1},
        is_unsafe=True,
    )

    assert unsafe_settings(policy) == ["user", "volumes.1", "host_config.Privileged"]
    assert unsafe_notice(policy) == (
        "its container is not hardened (docker.allow_unsafe): user, volumes.1, host_config.Privileged"
    )


def test_mounts_are_asked_about_again_when_a_container_is_made() -> None:
    socket = Mount(source="/run/docker.sock", target="/x")

    assert unsafe_mounts(ContainerPolicy(), [WORK, socket]) == [socket]
    assert unsafe_mounts(ContainerPolicy(is_unsafe=True), [WORK, socket]) == []


def test_a_hardened_container_needs_no_words() -> None:
    assert unsafe_notice(ContainerPolicy()) is None
    assert unsafe_notice(ContainerPolicy(is_unsafe=True)) is None
