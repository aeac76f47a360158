"""Commands of workflows whose agents have containers: they run inside, whatever ends them, and never outside instead."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from docker_engine import DockerEngine
from runtimes.container.container_herd import ContainerHerd, bash
from runtimes.container.test_container_ends import state_of
from runtimes.keeper.kept_worker import is_whole, wait_until

pytestmark = pytest.mark.timeout(200)
HOSTILE = """$(touch escaped) '; echo "é" `touch escaped` \\"""
CODER = {
    "name": "coder",
    "script": [bash("echo made >> made"), {"say": HOSTILE}],
}
WHERE = 'echo "uid $(id -u), worker ${OF_THE_WORKER:-unknown}, $DECLARED"'
"""Says whether it is in the container: the worker is root out here."""


@pytest.fixture
def make(docker_engine: DockerEngine, container_image: str, tmp_path: Path) -> Any:
    """Makes a fleet with one workflow, `check`."""

    def made(phases: list[dict[str, Any]], **settings: Any) -> ContainerHerd:
        more = {"agents": [CODER], "env": {"DECLARED": "declared"}, **settings}
        agents, workflows = more.pop("agents"), more.pop("workflows", {})
        directory = more.pop("directory", "work")
        workflows["check"] = {"phases": phases, "working_directory": directory}
        return ContainerHerd(
            tmp_path, docker_engine, container_image, agents, workflows=workflows, **more
        )

    return made


def repository(herd: ContainerHerd) -> None:
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "safe.directory=*"]
        subprocess.run(["git", *identity, *words], cwd=herd.work, check=True)


def run(herd: ContainerHerd, *words: str) -> dict[str, Any]:
    """Run the workflow; return the run as the command shows it."""
    herd.nightherd("workflow", "run", "check", *words)
    return shown(herd)


def shown(herd: ContainerHerd) -> dict[str, Any]:
    done = herd.nightherd("runs", "show", "@last", "--json")
    found = json.loads(done.stdout)["data"]
    assert isinstance(found, dict)
    return found


def output(herd: ContainerHerd, phase: str) -> str:
    return herd.nightherd("runs", "show", "@last", "--output", phase).stdout.strip()


def test_command_runs_where_the_agent_ran_with_its_values_and_in_its_files(make: Any) -> None:
    herd = make(
        [
            {"name": "code", "agent": "coder", "prompt": "go"},
            {
                "name": "test",
                "bash": f'{WHERE}; cat made; echo "$TEXT"; cat; git log --format=%s; touch {{mark}}',
                "env": {"TEXT": "${phases.code.output}"},
                "stdin": "${phases.code.output}\n",
            },
            {
                "name": "count",
                "python": "import os; print(os.getuid(), open('made').read())",
                "loop": {"max_iterations": 2, "until_command": f"{WHERE}; test $(id -u) = 1000"},
            },
        ],
        directory={"root": "work", "mode": "worktree"},
    )
    mark = herd.root / "escaped"
    fleet = herd.root / "nightherd.yaml"
    fleet.write_text(fleet.read_text().replace("{mark}", f"{mark} || true"))
    repository(herd)

    found = run(herd)

    assert found["status"] == "succeeded", found
    text = output(herd, "test")
    said = f"uid 1000, worker unknown, declared\nmade\n{HOSTILE}\n{HOSTILE}\nfirst"
    assert text == said
    assert output(herd, "count") == "1000 made"
    assert not mark.exists()
    assert herd.containers() == []
    lines = [path.read_text() for path in (herd.root / ".nightherd" / "jobs").glob("*.jsonl")]
    assert len(lines) == 4
    assert all('"subtype":"container"' in one for one in lines), "each names its container"


def test_default_and_what_a_phase_says_instead(make: Any) -> None:
    herd = make(
        [
            {"name": "before", "bash": WHERE},
            {"name": "code", "agent": "coder", "prompt": "go"},
            {"name": "outside", "bash": WHERE, "container": False},
            {"name": "named", "bash": f"{WHERE}; echo $PATH", "container": "other"},
            {"name": "below", "workflow": "commands"},
        ],
        workflows={
            "commands": {"phases": [{"name": "inner", "bash": WHERE}]},
            "alone": {"phases": [{"name": "alone", "bash": WHERE}]},
        },
        agents=[
            {"name": "host", "docker": {"enabled": False}, "script": [{"say": "hi"}]},
            CODER,
            {"name": "other", "docker": {"env": {"DECLARED": "other"}}, "script": [{"say": "x"}]},
        ],
    )

    found = run(herd)

    assert found["status"] == "succeeded", found
    inside = "uid 1000, worker unknown, declared"
    assert output(herd, "before") == inside, "an agent after it has a container"
    assert output(herd, "outside").startswith("uid 0, worker")
    assert output(herd, "named").startswith("uid 1000, worker unknown, other\n")
    inner = herd.nightherd("runs", "show", found["child_runs"][0], "--output", "inner")
    assert inner.stdout.strip() == inside, (
        "a workflow of commands runs where its caller's agents do"
    )
    herd.nightherd("workflow", "run", "alone")
    assert output(herd, "alone").startswith("uid 0, worker"), "no agent, no container"


def test_command_is_not_run_on_this_machine_when_the_agent_of_its_container_is_gone(
    make: Any,
) -> None:
    herd = make(
        [
            {"name": "code", "agent": "coder", "prompt": "go"},
            {"name": "approve", "gate": {"summary": "go on?"}},
            {"name": "test", "bash": "touch ran"},
        ]
    )
    assert run(herd)["status"] == "paused"
    fleet = json.loads((herd.root / "nightherd.yaml").read_text())
    fleet["agents"] = [{"name": "another", "docker": {"enabled": False}, "script": [{"say": "x"}]}]
    fleet["workflows"] = {}
    (herd.root / "nightherd.yaml").write_text(json.dumps({**fleet, "reload": "auto"}))
    herd.nightherd("inbox", "approve", "@last")
    herd.nightherd("worker", "--until-idle")

    assert shown(herd)["status"] == "failed"
    assert "'coder', which is not in the fleet any more" in herd.job()["error"]["message"]
    assert not (herd.work / "ran").exists()


def test_killed_worker_takes_the_command_along_and_on_interrupt_is_obeyed(
    make: Any, docker_engine: DockerEngine
) -> None:
    held = "echo run >> runs; echo $$ > begun; while [ ! -e go ]; do sleep 0.05; done"
    herd = make(
        [
            {"name": "test", "bash": held, "on_interrupt": "rerun", "container": "coder"},
            {"name": "last", "bash": "echo last", "container": False},
        ]
    )
    with herd.started("workflow", "run", "check") as worker:
        wait_until(lambda: is_whole(herd.work / "begun"))
        first = herd.wait_for_container()
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        wait_until(lambda: state_of(docker_engine, first) in ("exited", "gone"))
    (herd.work / "go").touch()

    herd.nightherd("worker", "--until-idle")

    assert shown(herd)["status"] == "succeeded"
    assert (herd.work / "runs").read_text() == "run\n" * 2
    assert state_of(docker_engine, first) == "gone"
    assert herd.containers() == []


def test_cancel_ends_a_command_with_all_it_started(make: Any) -> None:
    endless = "sleep 600 & echo begun | tee begun; while :; do sleep 0.05; done"
    herd = make(
        [
            {"name": "test", "bash": endless},
            {"name": "code", "agent": "coder", "prompt": "go"},
        ]
    )
    with herd.started("workflow", "run", "check") as worker:
        wait_until(lambda: is_whole(herd.work / "begun"))
        herd.nightherd("runs", "cancel", "@last")
        worker.wait(30)

    assert shown(herd)["status"] == "cancelled"
    assert herd.containers() == []
    assert herd.results() == ["begun\n"]
