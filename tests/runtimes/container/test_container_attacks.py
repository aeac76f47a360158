"""What an agent in a container may try: against its keeper, against the machine, and with all that it can use up."""

from __future__ import annotations

import errno
import os
import re
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from docker_engine import DockerEngine
from nightherd.runtimes.container.place import ContainerGoneError
from runtimes.container.container_stage import Box, Boxes
from runtimes.container.test_container_ends import state_of

Inside = Callable[[Callable[[Box], Awaitable[Any]]], Any]
CONNECT = """python3 - <<'END'
import socket
asked = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asked.connect("/run/nightherd/keeper.sock")
try:
    asked.send(b"release 1000000")
    print("answer:", asked.recv(100))
except OSError as error:
    print("answer:", b"")
END
"""
REPLACE = """python3 - <<'END'
import os, socket
os.unlink("/run/nightherd/keeper.sock")
fake = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
fake.bind("/run/nightherd/keeper.sock")
fake.listen()
print("ready", flush=True)
while True:
    one, _ = fake.accept()
    print("asked", one.recv(1000), flush=True)
END
"""
BOMB = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
try:
    while os.fork():
        pass
    signal.pause()
except BlockingIOError:
    print("full", flush=True)
"""


@pytest.fixture
def inside(shared_boxes: Boxes) -> Inside:
    """Runs a function with the container that these tests share; 64 MB of memory."""

    async def work(use: Callable[[Box], Awaitable[Any]]) -> Any:
        small = shared_boxes.wanted(is_ephemeral=False, memory_bytes=64 * 1024**2, pids_limit=100)
        async with shared_boxes.opened(small) as box:
            return await use(box)

    return lambda use: anyio.run(work, use)


def output_of(inside: Inside, command: str) -> str:
    """What a command in the shared container prints."""

    async def run(box: Box) -> str:
        return (await box.run(command))[0]

    return str(inside(run))


# The keeper.


def test_process_inside_gets_no_answer_from_the_keeper(inside: Inside) -> None:
    assert output_of(inside, CONNECT) == "answer: b''\n"


def test_process_that_replaces_the_socket_is_never_asked(
    boxes: Boxes, docker_engine: DockerEngine
) -> None:
    async def replace() -> tuple[bytes, str]:
        seen = bytearray()
        async with boxes.opened() as box:
            async with box.kept("bash", "-c", REPLACE) as process:
                assert process.stdout is not None
                seen += await process.stdout.receive()
                with pytest.raises(ContainerGoneError, match="in the place of"):
                    await box.run("echo never")
                seen += await process.stdout.receive()
                await process.stop()
                await process.stdout.drain(seen.extend)
            return bytes(seen), box.id

    seen, container = anyio.run(replace)

    assert seen == b"ready\nasked b''\n"
    assert state_of(docker_engine, container) == "gone"


@pytest.mark.parametrize("number", ["TERM", "INT", "KILL", "STOP", "HUP", "SEGV", "USR1", "CHLD"])
def test_signals_from_inside_do_nothing_to_process_1(inside: Inside, number: str) -> None:
    async def send(box: Box) -> str:
        await box.run(f"kill -{number} 1")
        return (await box.run("echo still here"))[0]

    assert inside(send) == "still here\n"


@pytest.mark.parametrize("name", ["environ", "mem", "fd/0", "root/etc/passwd", "maps"])
def test_process_1_cannot_be_looked_into(inside: Inside, name: str) -> None:
    assert "Permission denied" in output_of(inside, f"cat /proc/1/{name}")


def test_process_1_cannot_be_traced(inside: Inside) -> None:
    attach = (
        "import ctypes; c = ctypes.CDLL(None, use_errno=True); c.ptrace(16, 1, 0, 0); "
        "print(ctypes.get_errno())"
    )

    assert output_of(inside, f'python3 -c "{attach}"') == f"{errno.EPERM}\n"


def test_library_of_the_keeper_cannot_be_changed(inside: Inside) -> None:
    path = "/opt/nightherd/nightherd/runtimes/keeper/guard.py"

    assert "Read-only file system" in output_of(inside, f"echo x >> {path}; rm -rf /opt/nightherd")
    assert "rm: " in output_of(inside, f"rm -rf {path}")


# The machine.


@pytest.mark.parametrize(
    "command",
    [
        "touch /made",
        "touch /etc/made",
        "mount -t tmpfs none /mnt || python3 -c 'import ctypes,os; c=ctypes.CDLL(None,use_errno=True);"
        ' c.mount(b"none",b"/tmp",b"tmpfs",0,None); print(os.strerror(ctypes.get_errno()))\'',
        "python3 -c 'import os; os.mknod(\"/tmp/disk\", 0o60666, os.makedev(8, 0))'",
        "python3 -c 'import os; os.setuid(0)'",
        "python3 -c 'import os; os.chroot(\"/\")'",
        "echo 1 > /proc/sys/kernel/sysrq",
        "echo 1 > /proc/sysrq-trigger",
        "echo x > /sys/fs/cgroup/cgroup.procs",
        "python3 -c 'import os; os.chown(\".\", 0, 0)'",
    ],
)
def test_what_would_lead_out_is_refused(inside: Inside, command: str) -> None:
    refusals = "Read-only|not permitted|Permission denied|No such file|ermission"

    assert re.search(refusals, output_of(inside, command))


def test_process_has_no_capability_and_can_gain_none(inside: Inside) -> None:
    status = output_of(inside, "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status")
    found = dict(line.split(":\t") for line in status.splitlines())

    assert found.pop("NoNewPrivs") == "1"
    assert found.pop("Seccomp") == "2"
    assert {int(value, 16) for value in found.values()} == {0}


def test_processes_and_files_of_the_machine_are_not_seen(
    inside: Inside, shared_boxes: Boxes
) -> None:
    outside = shared_boxes.root / "outside.txt"
    outside.write_text("of the machine")

    assert "No such file" in output_of(inside, f"cat {outside}")
    assert "No such process" in output_of(inside, f"kill -0 {os.getpid()}")


def test_links_out_of_the_workspace_lead_to_what_the_container_has(
    inside: Inside, shared_boxes: Boxes
) -> None:
    outside = shared_boxes.root / "outside.txt"
    outside.write_text("of the machine")
    command = (
        f"ln -sfn {outside} link; cat link; echo changed > link; ln -sfn / up; cat up{outside}"
    )

    assert len(re.findall("No such file|Permission denied", output_of(inside, command))) == 3
    assert outside.read_text() == "of the machine"


def test_servers_of_the_machine_cannot_be_reached(
    inside: Inside, docker_engine: DockerEngine
) -> None:
    with docker_engine.listen("127.0.0.1") as loopback, socket.create_server(("", 0)) as every:
        ports = [loopback.getsockname()[1], every.getsockname()[1]]
        for port in ports:
            assert "refused" in output_of(inside, f"exec 3<>/dev/tcp/127.0.0.1/{port}")
    for address in ("169.254.169.254/80", "172.17.0.1/22", "8.8.8.8/53"):
        assert "unreachable" in output_of(inside, f"exec 3<>/dev/tcp/{address}")


def test_abstract_sockets_of_the_machine_cannot_be_reached(inside: Inside) -> None:
    name = f"nightherd-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(f"\0{name}")
        server.listen()
        connect = f"import socket; socket.socket(socket.AF_UNIX).connect(chr(0) + '{name}')"

        assert "ConnectionRefusedError" in output_of(inside, f'python3 -c "{connect}"')


# What can be used up.


def test_memory_that_is_used_up_ends_the_command_alone(inside: Inside) -> None:
    async def fill(box: Box) -> tuple[int | None, str]:
        _, ending = await box.run("exec python3 -c 'x = bytearray(500_000_000)'")
        return ending.returncode, (await box.run("echo still here"))[0]

    returncode, said = inside(fill)

    assert returncode not in (0, None)
    assert said == "still here\n"


def test_disk_in_memory_has_an_end(inside: Inside) -> None:
    for directory in ("/tmp", "/home/agent", "/dev/shm"):
        text = output_of(inside, f"head -c 1G /dev/zero > {directory}/full; rm -f {directory}/full")

        assert re.search("No space left|Killed|Cannot allocate", text) or text == "", directory
    assert output_of(inside, "echo still here") == "still here\n"


def test_fork_bomb_ends_at_the_limit_and_can_be_stopped(inside: Inside) -> None:
    async def explode(box: Box) -> str:
        async with box.kept("python3", "-c", f"{BOMB}\nsignal.pause()") as process:
            assert process.stdout is not None
            assert await process.stdout.receive() == b"full\n"
            with pytest.raises(OSError, match="temporarily unavailable"):
                await box.run("echo never")
        return (await box.run("echo still here"))[0]

    assert inside(explode) == "still here\n"


def test_fork_bomb_whose_keeper_is_killed_ends_too(inside: Inside) -> None:
    async def explode(box: Box) -> str:
        command = f"{BOMB}\nos.kill(os.getppid(), signal.SIGKILL); signal.pause()"
        async with box.kept("python3", "-c", command) as process:
            await process.wait()
        return (await box.run("echo still here"))[0]

    assert inside(explode) == "still here\n"
