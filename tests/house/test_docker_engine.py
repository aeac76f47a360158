"""The Docker Engine of the tests: shared, restarted, and gone without a trace however a run ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from components import Components
from docker_engine import (
    PREFIX,
    DockerEngine,
    engine_processes,
    mark,
    remove_leftovers,
    use_engine,
    wait_until_gone,
)

USER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from docker_engine import use_engine
with use_engine(Path(sys.argv[2])) as engine:
    print(engine.home, flush=True)
    sys.stdin.read()
"""


def start_user(repository: Path, shared: Path) -> subprocess.Popen[str]:
    """Start a process that uses the engine of `shared` until its standard input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", USER, repository / "tests", shared],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def home_of(user: subprocess.Popen[str]) -> Path:
    assert user.stdout is not None
    return Path(user.stdout.readline().strip())


def finish(user: subprocess.Popen[str]) -> None:
    user.communicate(timeout=60)


def wait_until_ended(pid: int) -> None:
    give_up = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < give_up, f"{pid} still runs"
        time.sleep(0.05)


def run_container(engine: DockerEngine, image: str, script: str, network: str = "none") -> str:
    body = {
        "Image": image,
        "Entrypoint": ["python3", "-c", script],
        "HostConfig": {"NetworkMode": network},
    }
    container = engine.json("POST", "/containers/create", body)["Id"]
    try:
        engine.json("POST", f"/containers/{container}/start")
        engine.json("POST", f"/containers/{container}/wait")
        _, log = engine.request("GET", f"/containers/{container}/logs?stdout=1&stderr=1")
        return log[8:].decode(errors="replace").strip()
    finally:
        engine.json("DELETE", f"/containers/{container}?force=1")


CONNECT = "import socket; print(socket.create_connection(('{0}', {1}), 10).recv(9).decode())"


def test_container_without_a_network_has_only_its_loopback(
    docker_engine: DockerEngine, container_image: str
) -> None:
    script = "import socket; print([name for _, name in socket.if_nameindex()])"

    assert "eth0" not in run_container(docker_engine, container_image, script)


def test_container_on_the_bridge_reaches_a_server_of_the_test(
    docker_engine: DockerEngine, container_image: str, components: Components
) -> None:
    if not docker_engine.has_bridge:
        components.absent("a network bridge", "a kernel with bridge and veth")
    with docker_engine.listen(docker_engine.gateway()) as server:
        host, port = server.getsockname()
        server_side = subprocess.Popen(
            [sys.executable, "-c", ACCEPT, str(server.fileno())], pass_fds=[server.fileno()]
        )
        said = run_container(docker_engine, container_image, CONNECT.format(host, port), "bridge")

    assert server_side.wait(60) == 0
    assert said == "good day!"


ACCEPT = """
import socket, sys
connection, _ = socket.socket(fileno=int(sys.argv[1])).accept()
connection.sendall(b"good day!")
"""


def test_engine_changes_nothing_of_the_hosts_network(docker_engine: DockerEngine) -> None:
    ours, engines = (Path(f"/proc/{pid}/ns/net").readlink() for pid in ("self", docker_engine.pid))

    assert ours != engines


def test_path_of_the_socket_is_short_enough_for_a_socket(docker_engine: DockerEngine) -> None:
    assert len(docker_engine.socket_path) < 100
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(docker_engine.socket_path)


def test_processes_share_one_engine_and_the_last_ends_it(
    docker_engine: DockerEngine, repository: Path, tmp_path: Path
) -> None:
    users = [start_user(repository, tmp_path) for _ in range(3)]
    homes = {home_of(user) for user in users}
    assert len(homes) == 1
    (home,) = homes

    users[0].kill()
    users[0].communicate()
    finish(users[1])
    assert (home / "s").exists()
    finish(users[2])

    wait_until_gone(tmp_path)
    assert not home.exists()
    assert engine_processes(home) == set()
    assert (docker_engine.home / "s").exists()


def test_engine_is_gone_after_its_only_user_is_killed(
    docker_engine: DockerEngine, repository: Path, tmp_path: Path
) -> None:
    user = start_user(repository, tmp_path)
    home = home_of(user)

    user.kill()
    user.communicate()

    wait_until_gone(tmp_path)
    assert not home.exists()
    assert engine_processes(home) == set()


def test_what_a_killed_supervisor_leaves_is_removed_by_the_next_run(
    docker_engine: DockerEngine, repository: Path, tmp_path: Path
) -> None:
    user = start_user(repository, tmp_path)
    home = home_of(user)
    supervisors = [
        pid
        for pid in engine_processes(home)
        if b"docker_engine.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    assert len(supervisors) == 1

    os.kill(supervisors[0], signal.SIGKILL)
    user.kill()
    user.communicate()
    wait_until_ended(supervisors[0])

    # Another process of this run may be faster.
    remove_leftovers()
    wait_until_gone(tmp_path)
    assert not home.exists()
    assert engine_processes(home) == set()
    assert (docker_engine.home / "s").exists()


def test_what_a_killed_run_leaves_of_a_rootless_engine_is_removed(
    components: Components, tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        components.absent("a directory of another user", "run the tests as root")
    user = subprocess.Popen(["true"])
    user.wait()
    rootless, being_made, running = (tmp_path / f"{PREFIX}{number}" for number in range(3))
    for home in (rootless, being_made, running):
        home.mkdir()
    mark(rootless, user.pid)
    mark(running, os.getpid())
    os.chown(rootless, 1000, 1000)

    assert remove_leftovers(tmp_path) == [rootless]
    assert sorted(tmp_path.iterdir()) == [being_made, running]


def test_engine_that_is_killed_starts_again(own_docker_engine: DockerEngine) -> None:
    first = own_docker_engine.pid

    own_docker_engine.kill()
    own_docker_engine.start()

    assert own_docker_engine.pid != first
    assert own_docker_engine.json("GET", "/version")["ApiVersion"]


def test_nested_use_of_the_same_directory_is_the_same_engine(
    repository: Path, tmp_path: Path, docker_engine: DockerEngine
) -> None:
    with use_engine(tmp_path) as engine:
        user = start_user(repository, tmp_path)
        assert home_of(user) == engine.home
        finish(user)
        assert engine.json("GET", "/version")["ApiVersion"]
    wait_until_gone(tmp_path)
    assert not engine.home.exists()
