"""A worker that is not root: in the group of the engine's socket, as on a developer's machine, or with a rootless engine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components import Components
from docker_engine import DockerEngine
from docker_image import ensure_image
from nightherd.testing.messages_api import MessagesApi
from nightherd.testing.messages_script import Call, Say
from runtimes.container.container_herd import USER, ContainerHerd, bash
from runtimes.container.test_container_ends import state_of
from runtimes.container.users_herd import GROUP, UsersHerd, owners
from runtimes.keeper.kept_worker import is_whole, wait_until

QUIET = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "NO_PROXY": "127.0.0.1,localhost"}
HELD = "echo begun > begun; while [ ! -e go ]; do sleep 0.05; done; echo continued"
MakeHerd = Callable[..., UsersHerd]


@pytest.fixture(params=["group", "rootless"])
def engine(request: pytest.FixtureRequest) -> DockerEngine:
    """An engine that the user may use."""
    is_rootless = request.param == "rootless"
    found: DockerEngine = request.getfixturevalue(
        "rootless_engine" if is_rootless else "docker_engine"
    )
    found.home.chmod(0o711)
    if not is_rootless:
        os.chown(found.socket_path, 0, GROUP)
    return found


@pytest.fixture
def inside(engine: DockerEngine) -> int:
    """What the user is inside: root of a rootless engine's containers is the user."""
    return 0 if "name=rootless" in engine.json("GET", "/info")["SecurityOptions"] else USER


@pytest.fixture
def make_herd(interpreter: str, engine: DockerEngine, open_directory: Path) -> MakeHerd:
    """Makes a fleet of one agent."""
    image = ensure_image(engine)

    def make(
        *script: dict[str, Any], agent: dict[str, Any] | None = None, **more: Any
    ) -> UsersHerd:
        player = {"name": "player", **(agent or {})}
        if script:
            player["script"] = [*script, {"say": "done"}]
        return UsersHerd(interpreter, open_directory, engine, image, [player], **more)

    return make


@pytest.mark.parametrize("runtime", ["scripted", "native"])
def test_tools_run_inside_as_the_user_of_the_worker(
    make_herd: MakeHerd, inside: int, runtime: str
) -> None:
    herd = make_herd(
        bash("cat /proc/1/comm; id -u; id -G; echo x > made; touch /usr/made"),
        {"tool": "Read", "input": {"file_path": "/workspace/made"}},
        agent={"runtime": runtime},
    )
    done = herd.nightherd("run", "player", "-p", "go", "--quiet")
    command, read = herd.results()

    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
    assert command.split()[:3] == ["python3", str(inside), str(inside)]
    assert "Read-only file system" in command
    assert "x" in read
    assert owners(herd.root) == {USER}
    assert herd.containers() == []


def test_job_of_a_killed_worker_continues_in_a_new_container(make_herd: MakeHerd) -> None:
    herd = make_herd(bash("echo first >> steps"), bash(HELD))
    with herd.started("run", "player", "-p", "go") as worker:
        container = herd.wait_for_container()
        wait_until(lambda: is_whole(herd.work / "begun"))
        worker.kill()
        worker.wait()
        wait_until(lambda: state_of(herd.engine, container) in ("exited", "gone"))
    (herd.work / "go").touch()
    with herd.started("worker"):
        herd.wait_until_completed()
        wait_until(lambda: herd.containers() == [])

    assert len(set(herd.container_ids())) == 2
    assert (herd.work / "steps").read_text() == "first\n"


def test_cancel_ends_all_that_runs_inside(make_herd: MakeHerd) -> None:
    herd = make_herd(bash("for i in $(seq 50); do sleep 600 & done; echo begun > begun; wait"))
    with herd.started("run", "player", "-p", "go") as worker:
        container = herd.wait_for_container()
        wait_until(lambda: is_whole(herd.work / "begun"))
        assert herd.nightherd("jobs", "cancel", "@last").returncode == 0
        worker.wait()

    assert herd.job()["status"] == "cancelled"
    assert state_of(herd.engine, container) == "gone"


def test_container_of_a_session_is_used_again(make_herd: MakeHerd) -> None:
    steps = bash("echo kept > /tmp/kept"), {"say": "one"}, {"end": True}, bash("cat /tmp/kept")
    herd = make_herd(*steps, agent={"session": {"mode": "persistent"}}, ephemeral=False)
    for _ in range(2):
        done = herd.nightherd("run", "player", "-p", "go", "--quiet")
        assert done.returncode == 0, done.stderr
    (kept,) = herd.containers()
    journals = [path.read_text() for path in herd.root.glob(".nightherd/jobs/*.jsonl")]

    assert len([text for text in journals if '"result":"kept' in text]) == 1
    herd.engine.json("DELETE", f"/containers/{kept['Id']}?force=1")


@pytest.mark.timeout(120)
def test_claude_works_inside_and_its_session_continues(
    make_herd: MakeHerd, inside: int, components: Components
) -> None:
    claude = f"{components.claude()}:/usr/local/bin/claude:ro"
    agent = {"runtime": "cli", "session": {"mode": "persistent"}}
    herd = make_herd(agent=agent, network="host", volumes=[claude], env=QUIET)
    calls = (Call("Bash", {"command": "id -u > made; cat /proc/1/comm"}),)
    answers = Say(calls=calls), Say(text="Made."), Say(text="As I said.")
    with herd.engine.in_network(lambda: MessagesApi(*answers)) as api:
        herd.environment |= {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "dummy-key"}
        first = herd.nightherd("run", "player", "-p", "make it", "--quiet")
        second = herd.nightherd("run", "player", "-p", "did you?", "--quiet")
        texts = api.asked[-1].texts

    assert (first.returncode, first.stdout.strip()) == (0, "Made."), first.stderr
    assert (second.returncode, second.stdout.strip()) == (0, "As I said."), second.stderr
    assert (herd.work / "made").read_text() == f"{inside}\n"
    assert [text for text in texts if text in ("make it", "Made.", "did you?")] == [
        "make it",
        "Made.",
        "did you?",
    ]
    assert owners(herd.root) == {USER}


def test_image_is_checked_and_the_doctor_finds_the_engine(
    make_herd: MakeHerd, engine: DockerEngine, inside: int
) -> None:
    herd = make_herd(bash("true"))
    herd.environment["DOCKER_HOST"] = f"unix://{engine.socket_path}"
    kind = "rootless" if inside == 0 else "as root"
    checked = herd.nightherd("container", "check", ensure_image(engine), "--without-claude")
    found = json.loads(herd.nightherd("doctor", "--json").stdout)["data"]

    assert checked.returncode == 0, (checked.stdout, checked.stderr)
    text = json.dumps(found)
    assert f"at {engine.socket_path}, {kind}, cgroup v" in text


def test_user_whose_files_the_worker_cannot_read_is_refused_for_claude(make_herd: MakeHerd) -> None:
    herd = make_herd(agent={"runtime": "cli"}, user="4321")
    done = herd.nightherd("run", "player", "-p", "go")

    assert done.returncode == 1
    assert "cannot read what Claude writes in a container of user 4321" in done.stdout + done.stderr
    assert "leave docker.user out" in done.stdout + done.stderr
    assert herd.containers() == []


def test_tools_run_as_another_user_who_may_write_the_directory(make_herd: MakeHerd) -> None:
    herd = make_herd(bash("id -u; echo x > made"), user="4321")
    herd.work.chmod(0o777)
    done = herd.nightherd("run", "player", "-p", "go", "--quiet")

    assert done.returncode == 0, done.stderr
    assert herd.results()[0].split() == ["4321"]
    assert (herd.work / "made").read_text() == "x\n"
    assert herd.containers() == []


def test_worker_of_root_is_told_whose_a_rootless_engine_is(
    rootless_engine: DockerEngine, tmp_path: Path
) -> None:
    agents = [{"name": "player", "script": [{"say": "never"}]}]
    herd = ContainerHerd(tmp_path, rootless_engine, ensure_image(rootless_engine), agents)
    done = herd.nightherd("run", "player", "-p", "go")

    assert done.returncode == 1
    assert "is the rootless one of user 1000, and this worker is of user 0" in done.stdout
    assert herd.containers() == []
