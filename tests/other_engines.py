"""Real Docker Engines of other kinds for tests, with nothing left behind: a rootless one, and one with cgroup v2.

Rootless: `dockerd` in a user namespace of an ordinary user. What RootlessKit and `newuidmap` do is done here by root: the
namespace has the user as its root, and 65,536 more ids. It has no control groups, as on every machine without cgroup v2.

cgroup v2: the machine's second hierarchy is the only one that the engine sees. On a machine that has both, the controllers
belong to the first: then everything is as with cgroup v2, but nothing is limited. Neither has a network but loopback.
"""

from __future__ import annotations

import ctypes
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

OWNER = 1000
"""Whose engine it is, and what its containers' root is out here."""
MORE_IDS = 1_000_000_000
"""What the ids from 1 on are out here."""
CLONE_NEWUSER = 0x10000000
PROXY = "rootlesskit-docker-proxy"
"""`dockerd` looks for it, also where no port is published."""


@contextmanager
def use_other_engine(kind: str) -> Iterator[DockerEngine]:
    """Give an engine, `rootless` or with `cgroup2`, and remove it with all its containers at the end of the block."""
    remove_leftovers()
    home = Path(tempfile.mkdtemp(prefix=PREFIX, dir=PLACE))
    mark(home, os.getpid())
    for name in ("bin", "runtime"):
        (home / name).mkdir()
    (home / "bin" / PROXY).symlink_to("/bin/false")
    (home / "config.json").write_text("{}")
    if kind == "rootless":
        for path in (home, home / "runtime"):
            os.chown(path, OWNER, OWNER)
    with (home / "log").open("wb") as log:
        engine = subprocess.Popen(
            [sys.executable, "-I", __file__, str(home), kind],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        wait(
            lambda: answers(str(home / "s")) or engine.poll() is not None,
            f"the {kind} engine does not answer",
        )
        if engine.poll() is not None:
            raise EngineDidNotStart((home / "log").read_text(errors="replace")[-2000:])
        yield DockerEngine(home=home, has_bridge=False)
    finally:
        engine.terminate()
        with suppress(subprocess.TimeoutExpired):
            engine.wait(20)
        remove(home)


def _become_root_of_a_namespace() -> None:
    """Become `OWNER`, who is root in a user namespace of their own."""
    is_left, leave = os.pipe()
    is_mapped, mapped = os.pipe()
    pid = os.getpid()
    if os.fork() == 0:
        os.read(is_left, 1)
        for name in ("uid_map", "gid_map"):
            Path(f"/proc/{pid}/{name}").write_text(f"0 {OWNER} 1\n1 {MORE_IDS} 65536\n")
        os.write(mapped, b".")
        os._exit(0)
    os.setgroups([])
    os.setresgid(OWNER, OWNER, OWNER)
    os.setresuid(OWNER, OWNER, OWNER)
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "no user namespace")
    os.write(leave, b".")
    os.read(is_mapped, 1)
    os.wait()
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def _become_engine(home: Path, kind: str) -> None:
    environment = {
        "PATH": f"{home / 'bin'}:{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin",
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home / "runtime"),
    }
    places = {"--data-root": "data", "--exec-root": "exec", "--pidfile": "pid"}
    command = [
        *("dockerd", "--config-file", str(home / "config.json")),
        *(word for option, name in places.items() for word in (option, str(home / name))),
        *("-H", f"unix://{home / 's'}", "--default-ulimit", "nofile=1024:1024"),
        *("--bridge=none", "--iptables=false", "--ip6tables=false"),
    ]
    if kind == "rootless":
        _become_root_of_a_namespace()
        isolate()
        _mount("tmpfs", "/run")
        environment["ROOTLESSKIT_STATE_DIR"] = str(home / "runtime")
        command.append("--rootless")
    else:
        isolate()
        _mount("cgroup2", "/sys/fs/cgroup")
        command += ["--cgroup-parent", f"/{home.name}"]
    os.execvpe("dockerd", command, environment)


def _mount(kind: str, directory: str) -> None:
    if ctypes.CDLL(None).mount(b"none", directory.encode(), kind.encode(), 0, None) != 0:
        raise OSError(f"{kind} cannot be mounted on {directory}")


if __name__ == "__main__":
    _become_engine(Path(sys.argv[1]), sys.argv[2])
