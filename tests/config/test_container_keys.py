"""`docker`: the container an agent gets, from all layers, and every mistake in it at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.folder import Folder
from nightherd.config.show import show
from nightherd.model.containers.policy import (
    DEFAULT_IMAGE,
    AllowedHost,
    ContainerNetwork,
    ContainerPolicy,
    Mount,
    PublishedPort,
)


def container(folder: Folder, section: str) -> ContainerPolicy:
    folder.fleet(f"agents:\n  - name: a\n    docker: {{enabled: true, {section}}}\n")
    policy = folder.agent("a").container
    assert policy is not None
    return policy


def test_an_agent_has_no_container_unless_it_is_switched_on(folder: Folder) -> None:
    folder.fleet("agents: [{name: a}, {name: b, docker: {image: x}}]\n")

    assert folder.agent("a").container is None
    assert folder.agent("b").container is None


def test_a_container_that_says_nothing_has_safe_defaults(folder: Folder) -> None:
    assert container(folder, "memory: 2g") == ContainerPolicy()


def test_every_key_of_a_container_is_read(folder: Folder) -> None:
    policy = container(
        folder,
        """ephemeral: false, memory: 1g, cpu_shares: 512, cpu_period: 50000, cpu_quota: 25000,
      max_containers: 2, workspace_mode: ro, tmpfs: [/scratch, "/more:size=1m"], pids_limit: 9,
      labels: {team: night}, image: agent:1, socket: "unix:///run/e.sock", network: bridge,
      user: 1000, volumes: ["/a:/b:ro"], env: {TZ: UTC}, ports: [80, "8080:81"],
      host_config: {ShmSize: 1, Ulimits: [{Name: nofile}]}""",
    )

    assert policy == ContainerPolicy(
        image="agent:1",
        socket="/run/e.sock",
        is_ephemeral=False,
        max_containers=2,
        user="1000",
        memory_bytes=1024**3,
        cpu_shares=512,
        cpu_period=50_000,
        cpu_quota=25_000,
        pids_limit=9,
        has_read_only_workspace=True,
        tmpfs={"/scratch": "", "/more": "size=1m"},
        labels={"team": "night"},
        volumes=(Mount(source="/a", target="/b", is_read_only=True),),
        environment={"TZ": "UTC"},
        ports=(PublishedPort(container=80), PublishedPort(container=81, host=8080)),
        host_config={"ShmSize": 1, "Ulimits": [{"Name": "nofile"}]},
    )


def test_each_layer_adds_to_the_one_below(folder: Folder) -> None:
    folder.write("agent.yaml", "name: a\ndocker: {memory: 1g, pids_limit: 3}\n")
    folder.fleet("""\
        docker: {enabled: true, base_image: fleet, network: none, pids_limit: 1, max_containers: 1}
        defaults: {docker: {image: defaults, pids_limit: 2}}
        agents:
          - {path: agent.yaml, overrides: {docker: {user: "7:8", memory: 512m}}}
        """)

    assert folder.agent("a").container == ContainerPolicy(
        image="defaults",
        network=ContainerNetwork.NONE,
        pids_limit=3,
        max_containers=1,
        memory_bytes=512 * 1024**2,
        user="7:8",
    )


def test_an_inner_fleet_adds_to_the_container_of_the_outer_one(folder: Folder) -> None:
    folder.write("inner/nightherd.yaml", "docker: {memory: 1g}\nagents: [{name: a}]\n")
    folder.fleet("docker: {enabled: true, network: none}\nfleets: [{path: inner, name: i}]\n")

    policy = folder.agent("i.a").container

    assert policy is not None
    assert (policy.network, policy.memory_bytes) == (ContainerNetwork.NONE, 1024**3)


def test_an_agent_may_leave_the_container_of_its_fleet(folder: Folder) -> None:
    folder.fleet("docker: {enabled: true}\nagents: [{name: a, docker: {enabled: false}}]\n")

    assert folder.agent("a").container is None


def test_host_paths_are_relative_to_the_file_that_names_them(folder: Folder) -> None:
    folder.write("inner/nightherd.yaml", "agents: [{name: a, docker: {volumes: ['data:/data']}}]\n")
    folder.fleet("""\
        docker: {enabled: true, socket: ../engine.sock}
        fleets: [{path: inner, name: i}]
        agents: [{name: b, docker: {volumes: ["../x:/x", "~/y:/y:ro"]}}]
        """)
    a, b = (folder.agent(name, HOME="/home/me").container for name in ("i.a", "b"))

    assert a is not None
    assert b is not None
    assert a.volumes == (Mount(source=f"{folder.root}/inner/data", target="/data"),)
    assert a.socket == f"{folder.root.parent}/engine.sock"
    assert b.volumes == (
        Mount(source=f"{folder.root.parent}/x", target="/x"),
        Mount(source="/home/me/y", target="/y", is_read_only=True),
    )


def test_a_container_of_a_fleet_whose_directory_has_a_colon(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "a:b")
    folder.write("nightherd.yaml", "agents: [{name: a, docker: {volumes: ['x:/x']}}]\n")

    assert folder.errors() == []


def test_an_agent_file_may_use_only_what_restricts_a_container(folder: Folder) -> None:
    folder.write(
        "agent.yaml",
        "name: a\n"
        "docker:\n"
        "  enabled: true\n"
        "  allow_unsafe: true\n"
        "  socket: /x\n"
        "  allowed_hosts: []\n"
        "  volumes: []\n",
    )
    folder.fleet("agents: [{path: agent.yaml}]\n")

    assert folder.errors() == [
        f"agent.yaml:{line}:3 '{key}' may only be set in the fleet file"
        for line, key in ((4, "allow_unsafe"), (5, "socket"), (6, "allowed_hosts"), (7, "volumes"))
    ]
    assert folder.found()[0].hint == "put it under 'defaults' or under this agent's 'overrides'"


def test_a_fleet_as_herdctl_users_write_it_loads(folder: Folder) -> None:
    folder.write(
        "agents/coder.yaml",
        """\
        name: coder
        docker:
          enabled: true
          ephemeral: false
          memory: "4g"
          cpu_shares: 1024
          max_containers: 5
          workspace_mode: rw
          tmpfs: ["/scratch:size=512m,mode=1777"]
          pids_limit: 200
          labels: {project: shop}
        """,
    )
    folder.fleet("""\
        version: 1
        defaults:
          docker:
            image: herd/runtime:latest
            network: bridge
            user: "1000:1000"
            volumes: ["./cache:/cache", "/etc/ssl:/etc/ssl:ro"]
            env: {GIT_AUTHOR_NAME: Coder}
            ports: ["8080:8080"]
        agents: [{path: agents/coder.yaml}]
        """)

    policy = folder.agent("coder").container

    assert folder.check().problems == ()
    assert policy is not None
    assert policy.image == "herd/runtime:latest"
    assert policy.volumes[0] == Mount(source=f"{folder.root}/cache", target="/cache")
    assert not policy.is_ephemeral


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("memory: 5m", "13 a container needs at least 6m of memory"),
        ("memory: 0", "13 a container needs at least 6m of memory"),
        ("cpu_period: 10", "17 expected at least 1000, got the number 10"),
        ("cpu_quota: 1", "16 expected at least 1000, got the number 1"),
        ("cpu_shares: 1", "17 expected at least 2, got the number 1"),
        ("pids_limit: 0", "17 expected at least 1, got the number 0"),
        ("tmpfs: [/proc]", "13 '/proc' cannot be mounted over: the container needs it"),
        ("tmpfs: ['/x:suid']", "13 'suid' is not an option of tmpfs; write size=64m"),
        ("labels: {nightherd.fleet: x}", "14 'nightherd.fleet' is not free"),
        ("volumes: ['x:/workspace']", "15 '/workspace' cannot be mounted over"),
        ("volumes: ['x:/var/run/nightherd']", "15 '/var/run/nightherd' cannot be mounted over"),
        ("ports: [70000]", "13 '70000' is not a port: ports are from 1 to 65535"),
        ("ports: ['0:80']", "13 '0:80' is not a port: ports are from 1 to 65535"),
        ("user: root", "11 'root' is not a user; write UID or UID:GID"),
        ("user: '0:5'", "5 an agent does not run as root in its container"),
        ("socket: 'tcp://1.2.3.4:5'", "13 'tcp://1.2.3.4:5' is not a socket"),
        ("socket: 'unix://e.sock'", "13 'unix://e.sock' is not a socket; write a path"),
        ("private_hosts: [a.b]", "5 'private_hosts' needs network: egress; the network is bridge"),
        ("network: egress, private_hosts: [10.0.0.1]", "38 '10.0.0.1' is an address"),
        ("allowed_hosts: [a.b]", "5 'allowed_hosts' needs network: egress; the network is bridge"),
        ("network: egress, allowed_hosts: [1.2.3.4]", "38 '1.2.3.4' is an address"),
        ("volumes: ['/:/host']", "15 this mount would give the agent control of this machine"),
        ("volumes: ['/a:/a', /var/run/docker.sock:/d]", "24 this mount would give"),
        ("socket: /srv/e.sock, volumes: ['/srv:/d']", "36 this mount would give"),
        ("host_config: {privileged: true}", "19 'privileged' would undo the hardening"),
        ("network: none, host_config: {NetworkMode: bridge}", "34 'NetworkMode' would undo"),
        ("tmpfs: [/x], volumes: ['/a:/x/']", "13 this path is mounted more than once"),
    ],
)
def test_a_mistake_is_shown_at_its_place(folder: Folder, line: str, message: str) -> None:
    folder.fleet(f"agents:\n- name: a\n  docker:\n   {{{line}}}\n")

    assert folder.errors()[0].startswith(f"nightherd.yaml:4:{message}")


@pytest.mark.parametrize("target", ["/", "/run/docker.sock"])
def test_a_link_to_what_may_not_be_mounted_is_followed(folder: Folder, target: str) -> None:
    (folder.root / "link").symlink_to(target)
    folder.fleet("agents: [{name: a, docker: {volumes: ['link:/x']}}]\n")

    assert folder.errors() == [
        "nightherd.yaml:1:39 this mount would give the agent control of this machine"
    ]


def test_the_working_directory_is_not_mounted_over(folder: Folder) -> None:
    (folder.root / "desk").mkdir()
    folder.fleet(f"""\
        agents:
          - name: a
            working_directory: desk
            docker: {{tmpfs: ["{folder.root}/desk"]}}
        """)

    assert folder.errors() == ["nightherd.yaml:4:22 the working directory is mounted there"]


def test_the_fleet_file_may_allow_what_is_unsafe(folder: Folder) -> None:
    policy = container(
        folder,
        "allow_unsafe: true, user: '0', volumes: ['/:/host'], host_config: {Privileged: true}",
    )

    assert policy.is_unsafe
    assert policy.host_config == {"Privileged": True}


def test_ports_of_a_container_without_a_bridge_are_a_notice(folder: Folder) -> None:
    folder.fleet("agents: [{name: a, docker: {network: none, ports: [80]}}]\n")

    assert folder.errors() == []
    assert folder.notices() == ["nightherd.yaml:1:44 'ports' are not published with network: none"]


def test_the_hosts_of_an_agent_with_network_egress(folder: Folder) -> None:
    folder.fleet("""\
        docker: {enabled: true, network: egress, allowed_hosts: [API.example, "*.b.example:8443"], private_hosts: ["mirror.lan:80"]}
        agents: [{name: a}, {name: b, docker: {network: none, allowed_hosts: [], private_hosts: []}}]
        """)
    a, b = folder.agent("a"), folder.agent("b")

    assert a.container is not None
    assert a.container.allowed_hosts == (
        AllowedHost(name="api.example"),
        AllowedHost(name="*.b.example", port=8443),
    )
    assert a.container.private_hosts == (AllowedHost(name="mirror.lan", port=80),)
    assert (a.blocked_text, b.blocked_text) == (None, None)
    assert folder.notices() == []


def test_what_counts_is_shown_with_its_origin(folder: Folder) -> None:
    folder.fleet("""\
        docker: {enabled: true, env: {TOKEN: "${TOKEN}"}}
        agents: [{name: a, docker: {volumes: ["x:/x"]}}]
        """)

    shown = show(folder.load(TOKEN="secret"), "a", cwd=folder.root)["agents"]["a"]["docker"]

    assert shown["enabled"] == {"value": True, "origin": "nightherd.yaml:1"}
    assert shown["env"]["TOKEN"]["value"] == "${TOKEN}"
    assert shown["volumes"] == [{"value": f"{folder.root}/x:/x", "origin": "nightherd.yaml:2"}]
    assert shown["image"] == {"value": DEFAULT_IMAGE, "origin": "default"}
    assert shown["allow_unsafe"] == {"value": False, "origin": "default"}


@pytest.mark.parametrize(
    "section",
    [
        "volumes: ['${SECRET}:/x']",
        "volumes: ['/a:${SECRET}']",
        "tmpfs: ['${SECRET}']",
        "ports: ['${SECRET}']",
        "user: '${SECRET}'",
        "socket: 'unix:/${SECRET}://x'",
        "network: egress, allowed_hosts: ['${SECRET}']",
        "host_config: {Privileged: '${SECRET}'}",
    ],
)
def test_no_message_shows_what_a_variable_holds(folder: Folder, section: str) -> None:
    folder.fleet(f"agents: [{{name: a, docker: {{{section}}}}}]\n")

    problems = folder.check(SECRET="/proc/hidden").problems

    assert problems
    assert not [one for one in problems if "hidden" in f"{one.message}{one.hint}{one.text}"]


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("working_directory: /", 20),
        ("workspace: {root: /proc}", 19),
        ("add_dirs: [/srv, /var/run]", 18),
        ("plugins: [{path: /run}]", 18),
        ("schedules: {s: {interval: 1h, prompt: x, working_directory: /sys}}", 61),
        ("add_dirs: [link]", 12),
    ],
)
def test_an_agent_file_may_not_get_the_machine_by_its_directories(
    folder: Folder, line: str, column: int
) -> None:
    (folder.root / "link").symlink_to("/")
    folder.write("a.yaml", f"name: a\n{line}\n")
    message = "in a container, this directory would give the agent control of this machine"
    agents = "agents: [{path: a.yaml}]\n"

    assert folder.fleet(agents).errors() == []
    folder.fleet(f"docker: {{enabled: true}}\n{agents}")
    assert folder.errors() == [f"a.yaml:2:{column} {message}"]
    assert folder.fleet(f"docker: {{enabled: true, allow_unsafe: true}}\n{agents}").errors() == []


def test_nor_by_the_directory_of_its_file(folder: Folder) -> None:
    folder.fleet("docker: {enabled: true, socket: e.sock}\nagents: [{name: a}]\n")

    assert [one.split(" ", 1)[1] for one in folder.errors()] == [
        "in a container, this directory would give the agent control of this machine"
    ]
