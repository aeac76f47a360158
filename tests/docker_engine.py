"""A real Docker Engine for the tests of one run, shared by its workers, with nothing left behind.

The first worker that needs it starts a supervisor: this file, run as a program. The supervisor moves into a mount and
a network namespace of its own, starts `dockerd` there, and restarts it when it dies. Each worker holds a lock on one
file; the kernel releases it even when the worker is killed. When no lock is left, the supervisor ends every process of
the engine and removes its files. What a killed supervisor leaves, the next run removes.
"""

from __future__ import annotations

import ctypes
import fcntl
import http.client
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import IO, Any, TypeVar

T = TypeVar("T")
PREFIX = "nhd-"
PLACE = Path("/tmp")  # a socket's path must be short, whatever TMPDIR says
START_S = 90.0
STOP_S = 20.0
POLL_S = 0.05
ATTEMPTS: Sequence[Sequence[str]] = (
    (),
    ("--iptables=false", "--ip6tables=false"),
    ("--bridge=none", "--iptables=false", "--ip6tables=false"),
)
"""More options each time: not every kernel has what a bridge needs."""
CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
MS_REC, MS_SLAVE, MNT_DETACH = 0x4000, 0x80000, 2
PR_SET_CHILD_SUBREAPER = 36
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
PROGRAMS = (
    *("dockerd", "containerd", "runc", "docker-proxy", "docker-init"),
    *("podman", "conmon"),
)


class EngineDidNotStart(Exception):
    """Why there is no engine."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout, blocksize=1024 * 1024)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@dataclass(frozen=True)
class DockerEngine:
    """An engine that runs, and what a test may do with it."""

    home: Path
    has_bridge: bool

    @property
    def socket_path(self) -> str:
        """Where it listens."""
        return str(self.home / "s")

    @property
    def pid(self) -> int:
        """The process id of `dockerd`, as the host sees it."""
        return int((self.home / "pid").read_text())

    @property
    def log(self) -> str:
        """What `dockerd` has written."""
        return (self.home / "log").read_text(errors="replace")

    def request(
        self,
        method: str,
        path: str,
        body: bytes | IO[bytes] | dict[str, Any] | None = None,
        *,
        content_type: str = "application/json",
        timeout_s: float = 120,
    ) -> tuple[int, bytes]:
        """Return the status and the body of one answer of the API."""
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        connection = _UnixConnection(self.socket_path, timeout_s)
        try:
            connection.request(method, path, body=data, headers={"Content-Type": content_type})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def json(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Return the decoded answer of the API; an error is an assertion that fails."""
        status, raw = self.request(method, path, body)
        assert status < 400, (method, path, status, raw)
        return json.loads(raw) if raw.strip() else None

    def listen(self, address: str, port: int = 0) -> socket.socket:
        """Return a socket that listens inside the engine's network namespace, where the bridge is.

        Containers reach it at the gateway's address, and those with the network `host` also at 127.0.0.1.
        """
        return self.in_network(lambda: socket.create_server((address, port)))

    def in_network(self, make: Callable[[], T]) -> T:
        """Return what `make` makes inside the engine's network namespace: its sockets are there."""
        made: list[T] = []
        failed: list[OSError] = []

        def run() -> None:
            try:
                _enter_network(self.pid)
                made.append(make())
            except OSError as error:
                failed.append(error)

        # Only the thread that makes it changes its namespace.
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        return made[0]

    def gateway(self) -> str:
        """Return the bridge's address on the engine's side."""
        config = self.json("GET", "/networks/bridge")["IPAM"]["Config"][0]
        # Engines before 23 do not name it before the first container.
        return str(config.get("Gateway") or next(ip_network(config["Subnet"]).hosts()))

    def kill(self) -> None:
        """Kill `dockerd` with SIGKILL; it stays dead until `start`."""
        (self.home / "hold").touch()
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        wait(lambda: not Path(f"/proc/{pid}").exists(), "dockerd was killed and does not end")

    def stop(self) -> None:
        """Stop `dockerd` as a service manager does; it stays so until `start`."""
        (self.home / "hold").touch()
        pid = self.pid
        os.kill(pid, signal.SIGTERM)
        wait(lambda: not Path(f"/proc/{pid}").exists(), "dockerd does not stop")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop `dockerd` where it is: it takes connections and answers none of them, until the end of the block."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def start(self) -> None:
        """Start `dockerd` again."""
        (self.home / "hold").unlink()
        wait(lambda: answers(self.socket_path), "dockerd does not start again")


def wait(is_so: Any, what: str, patience_s: float = START_S) -> None:
    """Wait until `is_so`; `EngineDidNotStart` says `what` when it takes too long."""
    give_up = time.monotonic() + patience_s
    while not is_so():
        if time.monotonic() > give_up:
            raise EngineDidNotStart(what)
        time.sleep(POLL_S)


def answers(path: str) -> bool:
    """Return whether an engine answers at this socket."""
    connection = _UnixConnection(path, 5)
    try:
        connection.request("GET", "/_ping")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@contextmanager
def use_engine(shared: Path) -> Iterator[DockerEngine]:
    """Give the engine of everyone who uses `shared`, a directory, and keep it until the end of the block.

    A process may be in one such block of a directory at a time: the lock belongs to the process.
    """
    with (shared / "docker-users").open("a+") as users:
        with one_at_a_time(shared / "docker-start"):
            # Waits while a supervisor that has nobody left is stopping.
            fcntl.lockf(users, fcntl.LOCK_SH)
            engine = _running(shared) or _start(shared)
        yield engine


def wait_until_gone(shared: Path) -> None:
    """Wait until the engine of `shared` has left nothing behind. For those who do not use it any more."""
    try:
        home = Path((shared / "docker-home").read_text())
    except OSError:
        return
    wait(
        lambda: not home.exists() and not engine_processes(home),
        f"the engine in {home} does not end",
    )


@contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Hold a lock on the file at `path`, among all processes."""
    with path.open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _running(shared: Path) -> DockerEngine | None:
    try:
        home = Path((shared / "docker-home").read_text())
        ready = json.loads((home / "ready.json").read_text())
    except (OSError, ValueError):
        return None
    if "error" in ready or not _is_supervised(home):
        return None
    return DockerEngine(home=home, has_bridge=bool(ready["has_bridge"]))


def _start(shared: Path) -> DockerEngine:
    remove_leftovers()
    home = Path(tempfile.mkdtemp(prefix=PREFIX, dir=PLACE))
    mark(home, os.getpid())
    (shared / "docker-home").write_text(str(home))
    with (home / "supervisor.log").open("wb") as log:
        subprocess.Popen(
            [sys.executable, "-I", __file__, str(home), str(shared / "docker-users")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ).returncode = 0  # it outlives this process, on purpose
    wait((home / "ready.json").exists, f"the supervisor does not start; see {home}", 2 * START_S)
    engine = _running(shared)
    if engine is None:
        raise EngineDidNotStart(json.loads((home / "ready.json").read_text()).get("error", "gone"))
    return engine


# What is left behind, and by whom.


def _start_time(pid: int) -> str | None:
    """Return when a process started, in the kernel's own count; None when there is none or it is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else fields[19]


def mark(home: Path, pid: int) -> None:
    """Record which process looks after the engine in `home`."""
    marker = home / "marker.json.new"
    marker.write_text(json.dumps({"pid": pid, "start_time": _start_time(pid)}))
    marker.replace(home / "marker.json")


def _is_supervised(home: Path) -> bool:
    try:
        marker = json.loads((home / "marker.json").read_text())
    except (OSError, ValueError):
        return False
    started = _start_time(marker["pid"])
    return started is not None and started == marker["start_time"]


def remove_leftovers(place: Path = PLACE) -> list[Path]:
    """Remove what supervisors left that were killed, and return it."""
    left = [home for home in place.glob(f"{PREFIX}*") if _is_left_behind(home)]
    for home in left:
        remove(home)
    return left


def _is_left_behind(home: Path) -> bool:
    try:
        # Not the directory: a rootless engine's belongs to its user.
        is_ours = (home / "marker.json").lstat().st_uid == os.getuid()
    except OSError:  # it is just being made, or removed
        return False
    return is_ours and not home.is_symlink() and not _is_supervised(home)


def remove(home: Path, *, is_supervisor: bool = False) -> None:
    """End every process of the engine in `home`, and remove its mounts, control groups and files."""
    give_up = time.monotonic() + STOP_S
    while (pids := engine_processes(home)) and time.monotonic() < give_up:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if is_supervisor:
            _reap()
        time.sleep(POLL_S)
    for line in reversed(Path("/proc/self/mountinfo").read_text().splitlines()):
        point = line.split()[4]
        if point.startswith(f"{home}/"):
            _libc().umount2(point.encode(), MNT_DETACH)
    for group in _control_groups(home):
        for directory, _, _ in os.walk(group, topdown=False):
            with suppress(OSError):
                Path(directory).rmdir()
    shutil.rmtree(home, ignore_errors=True)


def engine_processes(home: Path) -> set[int]:
    """Return the processes of the engine in `home`: its daemons, all below them, and all in its containers."""
    children: dict[int, list[int]] = {}
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        children.setdefault(parent, []).append(int(entry.name))
        name = Path(os.fsdecode(words[0])).name
        is_ours = name.startswith(PROGRAMS) or any(w.endswith(b"docker_engine.py") for w in words)
        if is_ours and any(os.fsencode(home) in word for word in words):
            found.add(int(entry.name))
    for group in _control_groups(home):
        for procs in group.rglob("cgroup.procs"):
            with suppress(OSError):
                found.update(int(pid) for pid in procs.read_text().split())
    waiting = list(found)
    while waiting:
        below = [pid for pid in children.get(waiting.pop(), ()) if pid not in found]
        found.update(below)
        waiting += below
    return {pid for pid in found - {os.getpid()} if _start_time(pid) is not None}


def _control_groups(home: Path) -> list[Path]:
    root = Path("/sys/fs/cgroup")
    # Podman's have the name of the container, below one that all of them share.
    podman = [
        f"libpod_parent/libpod-{more}{one.name}"
        for one in (home / "root" / "overlay-containers").glob("*/")
        for more in ("", "conmon-")
    ]
    names = (home.name, *podman)
    return [group for name in names for more in ("", "*/") for group in root.glob(more + name)]


def _reap(daemon: subprocess.Popen[bytes] | None = None) -> None:
    """Collect ended processes that were left to this one: `dockerd` takes a zombie for a running containerd."""
    with suppress(ChildProcessError):
        while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            if daemon is not None and ended.si_pid == daemon.pid:
                daemon.poll()
            else:
                os.waitpid(ended.si_pid, 0)


# The supervisor.


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _enter_network(pid: int) -> None:
    with Path(f"/proc/{pid}/ns/net").open("rb") as namespace:
        _check(_libc().setns(namespace.fileno(), CLONE_NEWNET))


def isolate() -> None:
    """Leave the host's network and mounts. What the host mounts later still appears here."""
    libc = _libc()
    _check(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
    _check(libc.unshare(CLONE_NEWNS | CLONE_NEWNET))
    _check(libc.mount(b"none", b"/", None, MS_REC | MS_SLAVE, None))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def _command(home: Path, more: Sequence[str]) -> list[str]:
    (home / "config.json").write_text("{}")
    places = {
        "--data-root": "data",
        "--exec-root": "exec",
        "--pidfile": "pid",
        "--config-file": "config.json",
    }
    return [
        "dockerd",
        *(word for option, name in places.items() for word in (option, str(home / name))),
        *("-H", f"unix://{home / 's'}"),
        *("--default-ulimit", "nofile=1024:1024"),
        *("--exec-opt", "native.cgroupdriver=cgroupfs"),
        *("--cgroup-parent", f"/{home.name}"),
        *("--shutdown-timeout", "2"),
        *more,
    ]


def _launch(
    home: Path, more: Sequence[str], give_up: float | None = None
) -> subprocess.Popen[bytes] | None:
    """Return a `dockerd` that answers; None when it ended, or does not answer until `give_up`."""
    with (home / "log").open("ab") as log:
        started = subprocess.Popen(
            _command(home, more), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    give_up = time.monotonic() + START_S if give_up is None else give_up
    while started.poll() is None and time.monotonic() < give_up:
        _reap(started)
        if answers(str(home / "s")):
            return started
        time.sleep(POLL_S)
    started.kill()
    started.wait()
    return None


def _supervise(home: Path, users: Path) -> None:
    mark(home, os.getpid())
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    isolate()
    running: subprocess.Popen[bytes] | None = None
    more: Sequence[str] = ()
    # A slow engine is waited for: with other options it would have no network.
    give_up = time.monotonic() + START_S
    for more in ATTEMPTS:
        running = _launch(home, more, give_up)
        if running is not None or time.monotonic() > give_up:
            break
    log = (home / "log").read_text(errors="replace")
    ready = (
        {"error": f"dockerd did not start: {log[-2000:]}"}
        if running is None
        else {"has_bridge": "--bridge=none" not in more}
    )
    (home / "ready.json.new").write_text(json.dumps(ready))
    (home / "ready.json.new").replace(home / "ready.json")
    with users.open("a+") as lock:
        while not _is_mine(lock):
            _reap(running)
            if running is not None and running.poll() is not None:
                running = None if (home / "hold").exists() else _launch(home, more)
            elif running is None and "error" not in ready and not (home / "hold").exists():
                running = _launch(home, more)
            time.sleep(POLL_S)
        if running is not None:
            running.terminate()
            with suppress(subprocess.TimeoutExpired):
                running.wait(STOP_S)
        # The lock is kept: who comes now waits until everything is gone.
        remove(home, is_supervisor=True)


def _is_mine(lock: IO[str]) -> bool:
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    _supervise(Path(sys.argv[1]), Path(sys.argv[2]))
