"""A real Podman for tests: its Docker-compatible service, in namespaces of its own, with nothing left behind.

Podman has no daemon: each container has a `conmon` that outlives the service. What a killed run leaves, the next run
removes together with what it finds of Docker Engines.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from docker_engine import (
    PLACE,
    PREFIX,
    DockerEngine,
    EngineDidNotStart,
    answers,
    isolate,
    mark,
    remove,
    remove_leftovers,
    wait,
)

SETTINGS = """
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "{home}/tmp"
static_dir = "{home}/static"
volume_path = "{home}/volumes"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[network]
network_config_dir = "{home}/networks"
"""
"""Without systemd there is only cgroupfs, and Debian's runc is the runtime that Docker has too.

Without `default_ulimits` Podman asks for more than a machine without CAP_SYS_RESOURCE may give.
"""
POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}'
"""No image is signed here. Podman refuses every image without such a file."""


@contextmanager
def use_podman() -> Iterator[DockerEngine]:
    """Give a Podman of this process's own, and remove it with all its containers at the end of the block."""
    remove_leftovers()
    home = Path(tempfile.mkdtemp(prefix=PREFIX, dir=PLACE))
    mark(home, os.getpid())
    with (home / "log").open("wb") as log:
        service = subprocess.Popen(
            [sys.executable, "-I", __file__, str(home)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    (home / "pid").write_text(str(service.pid))
    try:
        wait(
            lambda: answers(str(home / "s")) or service.poll() is not None,
            "Podman does not answer",
        )
        if service.poll() is not None:
            raise EngineDidNotStart((home / "log").read_text(errors="replace")[-2000:])
        yield DockerEngine(home=home, has_bridge=False)
    finally:
        service.terminate()
        with suppress(subprocess.TimeoutExpired):
            service.wait(20)
        remove(home)


def _become_service(home: Path) -> None:
    for name in ("tmp", "static", "volumes", "networks", "config/containers", "runtime"):
        (home / name).mkdir(parents=True)
    (home / "containers.conf").write_text(SETTINGS.format(home=home))
    (home / "config" / "containers" / "policy.json").write_text(POLICY)
    isolate()
    environment = {
        "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin",
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_RUNTIME_DIR": str(home / "runtime"),
        "CONTAINERS_CONF": str(home / "containers.conf"),
    }
    places = ("--root", str(home / "root"), "--runroot", str(home / "run"))
    words = ("system", "service", "--time", "0", f"unix://{home / 's'}")
    os.execvpe("podman", ["podman", *places, *words], environment)


if __name__ == "__main__":
    _become_service(Path(sys.argv[1]))
