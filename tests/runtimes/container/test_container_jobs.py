"""Whole jobs in containers, by the command: what they can see, and that they are not lost with worker or container."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from docker_engine import DockerEngine
from runtimes.container.container_herd import SECRET, USER, ContainerHerd, bash
from runtimes.container.test_container_ends import state_of
from runtimes.keeper.kept_worker import is_whole, wait_until

MakeHerd = Callable[..., ContainerHerd]
HELD = "echo x >> times; echo begun > begun; while [ ! -e go ]; do sleep 0.05; done; echo continued"
"""Runs until there is a file `go`."""


@pytest.fixture
def make_herd(tmp_path: Path, docker_engine: DockerEngine, container_image: str) -> MakeHerd:
    """Makes a fleet of these agents."""

    def make(*agents: dict[str, Any], image: str = container_image, **more: Any) -> ContainerHerd:
        return ContainerHerd(tmp_path, docker_engine, image, list(agents), **more)

    return make


def agent(*script: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "player", "script": [*script, {"say": "done"}], **more}


@pytest.mark.parametrize("runtime", ["scripted", "native"])
def test_tools_run_in_the_container(make_herd: MakeHerd, runtime: str) -> None:
    herd = make_herd(
        agent(
            bash("cat /proc/1/comm; id -u; pwd"),
            {"tool": "Write", "input": {"file_path": "made.txt", "content": "one\n"}},
            {
                "tool": "Edit",
                "input": {"file_path": "made.txt", "old_string": "one", "new_string": "two"},
            },
            {"tool": "Read", "input": {"file_path": "/workspace/made.txt"}},
            {"tool": "Read", "input": {"file_path": "/etc/passwd"}},
            runtime=runtime,
        )
    )
    done = herd.nightherd("run", "player", "-p", "go", "--quiet")
    results = herd.results()

    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
    assert results[0].split() == ["python3", str(USER), str(herd.work)]
    assert (herd.work / "made.txt").read_text() == "two\n"
    assert (herd.work / "made.txt").stat().st_uid == USER
    assert "two" in results[3]
    assert "agent:x:1000" in results[4], "not the host's"
    assert len(herd.container_ids()) == 1
    assert herd.containers() == []
    left = {path.name for path in (herd.root / ".nightherd" / "containers").iterdir()}
    assert left == {"library", "nothing"}, "nothing stays for each job"


def test_what_is_of_the_fleet_is_not_seen_inside(make_herd: MakeHerd) -> None:
    command = (
        # By names in pieces: a command that names these files is not even started.
        "e=.en; n=nightherd; ls -A .$n; echo .; cat $e'v'; echo .; env; echo .;"
        "echo x >> $n.yaml; touch .git/hooks/made; git log --format=%s; touch free"
    )
    herd = make_herd(
        agent(bash(command), working_directory="."),
        env={"GIVEN": "yes", "TOKEN": "${OF_THE_WORKER}"},
    )
    (herd.root / ".env").write_text(f"SECRET={SECRET}\n")
    os.chown(herd.root, 0, 0)  # git does not work in a directory of another user
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first commit"]):
        subprocess.run([*git, *words], cwd=herd.root, check=True)
    subprocess.run(["chown", "-R", f"{USER}:{USER}", herd.root], check=True)
    herd.nightherd("run", "player", "-p", "go")
    (result,) = herd.results()
    state, dotenv, rest, last = result.split(".\n", 3)

    assert state.split() == ["containers"]
    assert dotenv.strip() == ""
    assert "GIVEN=yes" in rest
    assert "OF_THE_WORKER" not in rest
    assert SECRET not in result
    assert last.count("Read-only file system") == 2, last
    assert "first commit" in last
    assert (herd.root / "free").exists()


def test_engine_is_told_no_secret(make_herd: MakeHerd) -> None:
    herd = make_herd(agent(bash(f"echo $TOKEN; {HELD}")), env={"TOKEN": "${OF_THE_WORKER}"})
    with herd.started("run", "player", "-p", f"prompt {SECRET}") as worker:
        container = herd.wait_for_container()
        wait_until(lambda: is_whole(herd.work / "begun"))
        seen = json.dumps(herd.engine.json("GET", f"/containers/{container}/json"))
        seen += json.dumps(herd.engine.json("GET", f"/containers/{container}/top"))
        _, log = herd.engine.request("GET", f"/containers/{container}/logs?stdout=1&stderr=1")
        (herd.work / "go").touch()
        assert worker.wait() == 0

    assert SECRET not in seen
    assert SECRET.encode() not in log
    assert herd.results()[0].startswith("[secret:")
    assert herd.container_ids() == [container]


def test_job_of_a_killed_worker_continues_in_a_new_container(make_herd: MakeHerd) -> None:
    herd = make_herd(agent(bash("echo first >> steps"), bash(HELD)))
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
    first, second = herd.container_ids()

    assert (first, second != container) == (container, True)
    assert (herd.work / "steps").read_text() == "first\n", (
        "a step that is on record is not repeated"
    )


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/containers/{}/kill"), ("DELETE", "/containers/{}?force=true")],
    ids=["kill", "remove"],
)
def test_job_continues_when_the_engine_ends_its_container(
    make_herd: MakeHerd, method: str, path: str
) -> None:
    script = bash("echo first >> steps"), bash(HELD), bash("echo last >> steps")
    herd = make_herd(agent(*script))
    with herd.started("run", "player", "-p", "go") as worker:
        container = herd.wait_for_container()
        wait_until(lambda: is_whole(herd.work / "begun"))
        herd.engine.json(method, path.format(container))
        assert worker.wait() == 0

    assert herd.job()["status"] == "completed"
    assert len(herd.container_ids()) == 2
    assert herd.results()[1].startswith("interrupted")
    assert (herd.work / "steps").read_text() == "first\nlast\n"
    assert herd.containers() == []


MANY = "for i in $(seq 500); do sleep 600 & done"


@pytest.mark.parametrize(
    "command",
    [
        f"{MANY}; echo begun > begun; wait",
        f"trap '{MANY}' TERM; echo begun > begun; while :; do sleep 0.05; done",
        f"trap '' TERM; ({MANY}; echo begun > begun; wait) & wait",
    ],
    ids=["before", "when asked to end", "deaf"],
)
def test_cancel_ends_all_that_runs_inside(make_herd: MakeHerd, command: str) -> None:
    herd = make_herd(agent(bash(command)), pids_limit=700)
    with herd.started("run", "player", "-p", "go") as worker:
        container = herd.wait_for_container()
        wait_until(lambda: is_whole(herd.work / "begun"))
        assert herd.nightherd("jobs", "cancel", "@last").returncode == 0
        worker.wait()

    assert herd.job()["status"] == "cancelled"
    assert state_of(herd.engine, container) == "gone"


@pytest.mark.parametrize(
    ("key", "reason"),
    [({"job_timeout": "3s"}, "timeout"), ({"limits": {"duration": "3s"}}, "limit")],
    ids=["timeout", "limit"],
)
def test_timeouts_and_limits_end_all_that_runs_inside(
    make_herd: MakeHerd, key: dict[str, Any], reason: str
) -> None:
    herd = make_herd(agent(bash(f"trap '' TERM; {MANY}; wait"), **key), pids_limit=700)
    with herd.started("run", "player", "-p", "go") as worker:
        container = herd.wait_for_container()
        worker.wait()

    job = herd.job()
    assert (job["exit_reason"] or job["suspend_reason"]) == reason
    assert state_of(herd.engine, container) == "gone"
    assert herd.containers() == []


def test_missing_image_is_an_error_that_says_what_to_do(make_herd: MakeHerd) -> None:
    herd = make_herd(agent(), image="no/such:image")
    done = herd.nightherd("run", "player", "-p", "go")

    assert done.returncode != 0
    assert "no/such:image" in done.stdout
    assert "build the image that agents run in" in done.stdout
    assert herd.containers() == []


@pytest.mark.parametrize(
    "docker",
    [
        {"tmpfs": ["/proc"]},
        {"tmpfs": ["/sys/fs/cgroup:rw"]},
        {"tmpfs": ["/run/nightherd"]},
        {"tmpfs": ["/data:dev,suid"]},
        {"labels": {"nightherd.fleet": "other"}},
        {"memory": "1k"},
        {"pids_limit": 0},
        {"pids_limit": -1},
        {"cpu_quota": -1},
        {"cpu_period": 10**12},
        {"cpu_shares": 0},
        {"max_containers": -1},
        {"workspace_mode": "host"},
        {"ephemeral": "perhaps"},
        {"volumes": ["/:/host"]},
        {"user": "0"},
        {"host_config": {"Privileged": True}},
    ],
)
def test_setting_that_would_give_up_the_boundary_is_refused(
    make_herd: MakeHerd, docker: dict[str, Any]
) -> None:
    herd = make_herd(agent(), **docker)
    done = herd.nightherd("run", "player", "-p", "go")

    assert done.returncode != 0
    assert next(iter(docker)) in done.stderr
    assert herd.containers() == []


def test_smallest_limits_and_own_directories_in_memory(make_herd: MakeHerd) -> None:
    herd = make_herd(
        agent(
            bash("df -k --output=size /data | tail -1; echo x > /data/x; touch /usr/x"),
        ),
        memory="32m",
        pids_limit=20,
        cpu_shares=2,
        cpu_quota=50_000,
        tmpfs=["/data:size=1m,mode=1777"],
        labels={"of": "mine"},
        workspace_mode="ro",
    )
    done = herd.nightherd("run", "player", "-p", "go", "--quiet")

    assert done.returncode == 0, done.stderr
    assert herd.results()[0].split()[0] == "1024"
    assert "Read-only" in herd.results()[0]


def test_file_tools_follow_links_only_to_what_the_container_has(make_herd: MakeHerd) -> None:
    def edit(path: str) -> dict[str, Any]:
        words = {"file_path": path, "old_string": "machine", "new_string": "agent"}
        return {"tool": "Edit", "input": words}

    herd = make_herd(
        agent(
            {"tool": "Read", "input": {"file_path": "link"}},
            {"tool": "Write", "input": {"file_path": "link", "content": "of the agent"}},
            edit("link"),
            {"tool": "Read", "input": {"file_path": "up/outside.txt"}},
            {"tool": "Grep", "input": {"pattern": "machine", "path": "up"}},
            {"tool": "Read", "input": {"file_path": "passwd"}},
        )
    )
    outside = herd.root / "outside.txt"
    outside.write_text("of the machine")
    (herd.work / "link").symlink_to(outside)
    (herd.work / "up").symlink_to(herd.root)
    (herd.work / "passwd").symlink_to("/etc/passwd")
    done = herd.nightherd("run", "player", "-p", "go", "--quiet")
    *refused, passwd = herd.results()

    assert done.returncode == 0, done.stderr
    assert outside.read_text() == "of the machine"
    assert len(refused) == 5
    assert not [text for text in refused if "of the machine" in text]
    assert "agent:x:1000" in passwd, "that of the image"


@pytest.mark.parametrize("runtime", ["scripted", "native"])
def test_call_waits_for_a_person_and_then_runs_inside(make_herd: MakeHerd, runtime: str) -> None:
    herd = make_herd(
        agent(
            bash("echo once >> times; cat /proc/1/comm"),
            bash("echo never >> times"),
            runtime=runtime,
            approvals=[{"tool": "Bash"}],
        )
    )
    herd.nightherd("run", "player", "-p", "go")
    asked = herd.job()
    before = (herd.work / "times").exists()
    answers = [
        herd.nightherd("inbox", "approve", "@last"),
        herd.nightherd("worker", "--until-idle"),
    ]
    answers += [
        herd.nightherd("inbox", "reject", "@last", "-m", "enough"),
        herd.nightherd("worker", "--until-idle"),
    ]

    assert (asked["status"], asked["suspend_reason"], before) == ("suspended", "approval", False)
    assert [done.returncode for done in answers] == [0, 0, 0, 0], [one.stderr for one in answers]
    assert (herd.work / "times").read_text() == "once\n"
    assert herd.results()[0] == "python3\n"
    assert "enough" in herd.results()[1]
    assert len(set(herd.container_ids())) == len(herd.container_ids()) >= 2
    assert herd.containers() == []


def test_container_that_is_not_hardened_says_so_at_every_start(make_herd: MakeHerd) -> None:
    herd = make_herd(
        agent(bash("id -u; grep CapEff /proc/self/status")),
        allow_unsafe=True,
        user="0",
        host_config={"CapAdd": ["SYS_PTRACE"]},
    )
    starts = [herd.nightherd("run", "player", "-p", "go") for _ in range(2)]

    for done in starts:
        assert done.returncode == 0, done.stderr
        said = "its container is not hardened (docker.allow_unsafe): user, host_config.CapAdd"
        assert said in done.stderr
        assert "  | 0\n" in done.stdout
        assert "0000000000080000" in done.stdout, "what was asked for is there"
