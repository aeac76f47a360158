"""What a container costs: a new one beside `docker run` of the same image, a reused one beside the same job on the host.

Start: from opening a container until the first command in it, `true`, has ended, beside `docker run IMAGE true`. Removing the
container counts on neither side; with it, beside `docker run --rm`, is a detail. Where there is no `docker` program, the same
requests are made of the engine's API. Reuse: a whole job of a scripted agent that runs one command, with `ephemeral: false`
after its first job, beside the same job without a container. Both by turns, and medians: neither the engine nor the disk is
ever at rest.

The engine is one of its own, started for this as root; else the one whose socket `NIGHTHERD_BENCHMARK_DOCKER` names, with
the image that `NIGHTHERD_BENCHMARK_IMAGE` names.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path

import anyio

from nightherd import Order, open_fleet
from nightherd.errors import NightherdError
from nightherd.model.containers.layout import Layout
from nightherd.model.containers.policy import ContainerNetwork, ContainerPolicy
from nightherd.model.containers.user import Ids
from nightherd.runtimes.container.containers import Containers, Wanted
from nightherd.runtimes.container.engine import Engine
from nightherd.runtimes.container.sockets import find_socket
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.keeper.process import kept_process

ROUNDS = 15
JOBS = 25
START_LIMIT = 1.3
REUSE_LIMIT_MS = 50
TESTS = Path(__file__).resolve().parents[1] / "tests"
USER = Ids(1000, 1000)
COMMAND = "true"
FLEET = """
agents:
  - name: outside
    runtime: scripted
    session: {{mode: persistent}}
    allowed_tools: [Bash]
    default_prompt: go
    script: &script
{script}
  - name: inside
    runtime: scripted
    session: {{mode: persistent}}
    allowed_tools: [Bash]
    default_prompt: go
    script: *script
    docker: {{enabled: true, ephemeral: false, network: none, image: "{image}", socket: "{socket}"}}
"""
JOB = """\
      - tool: Bash
        input: {command: "true"}
      - say: Done.
      - end: true
"""
"""What one job of the session plays; the next one goes on after it."""


@contextmanager
def engine_and_image() -> Iterator[tuple[str, str]]:
    """The socket of an engine, and the image in it."""
    socket = os.environ.get("NIGHTHERD_BENCHMARK_DOCKER")
    if socket is not None:
        yield socket, os.environ["NIGHTHERD_BENCHMARK_IMAGE"]
        return
    sys.path.insert(0, str(TESTS))
    from docker_engine import use_engine, wait_until_gone  # noqa: PLC0415 found once the path is set
    from docker_image import ensure_image  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as shared:
        with use_engine(Path(shared)) as engine:
            yield engine.socket_path, ensure_image(engine)
        wait_until_gone(Path(shared))


async def docker_run(engine: Engine, image: str, name: str) -> float:
    """Milliseconds of `docker run`; what it made is removed afterwards."""
    program = shutil.which("docker")
    begin = time.perf_counter()
    if program is not None:
        await anyio.run_process(
            [program, "-H", f"unix://{engine.socket}", "run", "--network=none", "--name", name, image, COMMAND]
        )  # fmt: skip
    else:
        await _through_the_api(engine, image, name)
    took = time.perf_counter() - begin
    await engine.remove(name, force=True)
    return took * 1000


async def docker_run_rm(engine: Engine, image: str, name: str) -> float:
    """Milliseconds of `docker run --rm`."""
    program = shutil.which("docker")
    begin = time.perf_counter()
    if program is not None:
        await anyio.run_process(
            [program, "-H", f"unix://{engine.socket}", "run", "--rm", "--network=none", image, COMMAND]
        )  # fmt: skip
    else:
        await _through_the_api(engine, image, name)
        await engine.remove(name, force=True)
    return (time.perf_counter() - begin) * 1000


async def _through_the_api(engine: Engine, image: str, name: str) -> None:
    body = {"Image": image, "Cmd": [COMMAND], "HostConfig": {"NetworkMode": "none"}}
    container = await engine.create(name, body)
    await engine.start(container)
    await engine.wait(container)


async def ours(containers: Containers, wanted: Wanted) -> tuple[float, float]:
    """Milliseconds until the first command in a new container has ended, and until the container is removed."""
    begin = time.perf_counter()
    async with containers.open(wanted) as running:
        keepers = containers.keepers.branch(place=running.place)
        async with kept_process(
            [COMMAND],
            cwd="/",
            env={"PATH": "/usr/bin:/bin"},
            execution=wanted.execution,
            stderr=subprocess.DEVNULL,
            keepers=keepers,
        ) as process:
            ending = await process.wait()
        started = time.perf_counter() - begin
        containers.keepers.discard(keepers)
    if ending.returncode != 0:
        raise SystemExit(f"the command in the container ended with {ending.returncode}")
    return started * 1000, (time.perf_counter() - begin) * 1000


async def measure_start(root: Path, socket: str, image: str) -> dict[str, list[float]]:
    keepers = Keepers()
    containers = Containers(
        root=root, fleet="benchmark", keepers=keepers, find_socket=partial(find_socket, environ={})
    )
    policy = ContainerPolicy(image=image, socket=socket, network=ContainerNetwork.NONE)
    found: dict[str, list[float]] = {"run": [], "run_rm": [], "started": [], "removed": []}
    async with Engine(socket) as engine:
        for number in range(ROUNDS + 1):
            wanted = Wanted(
                policy=policy,
                agent="benchmark",
                execution=f"benchmark.{number}",
                session="benchmark",
                user=USER,
                owner=USER,
                working_directory="/",
                layout=Layout(mounts=(), tmpfs={}),
                grace=timedelta(seconds=1),
            )
            started, removed = await ours(containers, wanted)
            taken = {
                "run": await docker_run(engine, image, f"benchmark-run-{number}"),
                "run_rm": await docker_run_rm(engine, image, f"benchmark-rm-{number}"),
                "started": started,
                "removed": removed,
            }
            if number > 0:  # the first of each loads programs from the disk
                for what, milliseconds in taken.items():
                    found[what].append(milliseconds)
    await containers.close()
    return found


async def measure_reuse(root: Path, socket: str, image: str) -> dict[str, list[float]]:
    file = root / "nightherd.yaml"
    file.write_text(FLEET.format(image=image, socket=socket, script=JOB * (JOBS + 1)))
    os.chown(root, USER.uid, USER.gid)
    found: dict[str, list[float]] = {"outside": [], "inside": []}
    async with open_fleet(file, environ={"PATH": os.environ["PATH"]}) as fleet:
        for number in range(JOBS + 1):
            for agent, taken in found.items():
                begin = time.perf_counter()
                result = await fleet.execute(Order(agent=agent))
                if not result.success:
                    raise SystemExit(f"the job of {agent} failed: {result.error}")
                if number > 0:  # the first makes the container
                    taken.append((time.perf_counter() - begin) * 1000)
    async with Engine(socket) as engine:
        for container in await engine.list({"nightherd.agent": "inside"}):
            with suppress(NightherdError):
                await engine.remove(container["Id"], force=True)
    return found


def main() -> None:
    """Prints both sides of each comparison, and what containers add."""
    with tempfile.TemporaryDirectory() as directory, engine_and_image() as (socket, image):
        root = Path(directory)
        root.chmod(0o755)
        for name in ("start", "reuse"):
            (root / name).mkdir()
        start = anyio.run(measure_start, root / "start", socket, image)
        reuse = anyio.run(measure_reuse, root / "reuse", socket, image)
    by = "docker" if shutil.which("docker") is not None else "the engine's API"
    median = {name: statistics.median(taken) for name, taken in {**start, **reuse}.items()}
    for name, taken in {**start, **reuse}.items():
        print(
            f"{name} took {median[name]:.1f} ms in the middle, {min(taken):.1f} ms at least ({by})"
        )
    ratio, whole = median["started"] / median["run"], median["removed"] / median["run_rm"]
    print(f"first command in a new container over docker run: {ratio:.2f}x (limit {START_LIMIT}x)")
    print(f"the same with removing it over docker run --rm: {whole:.2f}x")
    added = max(median["inside"] - median["outside"], 0.0)
    print(f"what a reused container adds to a job: {added:.1f} ms (limit {REUSE_LIMIT_MS} ms)")


if __name__ == "__main__":
    main()
