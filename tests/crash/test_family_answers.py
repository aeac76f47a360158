"""Children that wait for people: their parents wait with them, and an approved child is made once and joined."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from crash.ground import Ground, check_doctor_leaves_nothing
from nightherd.model.inbox.item import InboxItem, InboxQuery, ItemKind, ItemStatus
from nightherd.model.jobs.job import CHILD_WAITS, Job, JobQuery, JobStatus
from nightherd.model.journal.event import ToolResultEvent
from nightherd.wiring.stores import open_reader

FLEET = """\
fleet: {name: family}
lease: 5m
mirror: false
agents:
  - name: boss
    runtime: RUNTIME
    allowed_tools: [Spawn]
    approvals: [{tool: Spawn}]
    limits: {spawns: SPAWNS}
    script:
      - tool: Spawn
        input: {agent: helper, prompt: help}
      - say: done
  - name: helper
    runtime: RUNTIME
    allowed_tools: [Bash]
    approvals: [{tool: "Bash(echo:*)"}]
    script:
      - tool: Bash
        input: {command: "echo helped >> helped"}
      - say: helped
"""

MakeGround = Callable[[str], Ground]
RUNTIMES = pytest.mark.parametrize("runtime", ["scripted", "native"])


def jobs_of(ground: Ground) -> dict[str, Job]:
    with closing(open_reader(ground.state)) as reader:
        return {job.agent: job for job in reader.list_jobs(JobQuery())}


def waiting(ground: Ground) -> InboxItem:
    """The one thing that somebody is asked."""
    with closing(open_reader(ground.state)) as reader:
        (item,) = reader.list_items(InboxQuery())
        return item


def work(ground: Ground) -> None:
    assert ground.command("worker", "--until-idle").status == 0, ground.shown()


def approve(ground: Ground) -> None:
    assert ground.command("inbox", "approve", waiting(ground).id).status == 0, ground.shown()


def results(ground: Ground, agent: str) -> list[ToolResultEvent]:
    events = ground.journal(jobs_of(ground)[agent])
    return [event for event in events if isinstance(event, ToolResultEvent)]


@pytest.mark.slow
@RUNTIMES
def test_a_parent_waits_for_the_approval_of_its_approved_child(
    make_ground: MakeGround, runtime: str
) -> None:
    ground = make_ground(FLEET.replace("RUNTIME", runtime).replace("SPAWNS", "3"))
    ground.run("boss", "a")
    assert "helper" not in jobs_of(ground), "no child before it is approved"
    assert waiting(ground).tool == "Spawn"

    approve(ground)
    work(ground)

    jobs = jobs_of(ground)
    assert (jobs["boss"].status, jobs["boss"].error_code) == (JobStatus.SUSPENDED, CHILD_WAITS)
    assert jobs["helper"].status is JobStatus.SUSPENDED
    assert waiting(ground).job_id == jobs["helper"].id, "only the child asks"
    work(ground)
    assert jobs_of(ground)["boss"].epoch == jobs["boss"].epoch, "it does not wake up in vain"

    approve(ground)
    work(ground)

    assert {job.status for job in jobs_of(ground).values()} == {JobStatus.COMPLETED}
    assert [one.result for one in results(ground, "boss")] == ["helped"]
    assert (ground.folder / "helped").read_text() == "helped\n"
    check_doctor_leaves_nothing(ground)


@pytest.mark.slow
@RUNTIMES
def test_a_cancelled_parent_takes_the_question_of_its_child_with_it(
    make_ground: MakeGround, runtime: str
) -> None:
    ground = make_ground(FLEET.replace("RUNTIME", runtime).replace("SPAWNS", "3"))
    ground.run("boss", "a")
    approve(ground)
    work(ground)
    item = waiting(ground)

    assert ground.command("jobs", "cancel", jobs_of(ground)["boss"].id).status == 0

    with closing(open_reader(ground.state)) as reader:
        over = reader.find_item(item.id)
    assert over is not None
    assert over.status is ItemStatus.CANCELLED
    assert ground.command("inbox", "approve", item.id).status != 0
    work(ground)
    assert not (ground.folder / "helped").exists()


@pytest.mark.slow
@RUNTIMES
def test_an_approved_child_that_a_limit_stopped_is_made_when_the_limit_is_raised(
    make_ground: MakeGround, runtime: str
) -> None:
    ground = make_ground(FLEET.replace("RUNTIME", runtime).replace("SPAWNS", "0"))
    ground.run("boss", "a")
    approve(ground)
    work(ground)
    item = waiting(ground)
    assert item.kind is ItemKind.LIMIT, ground.shown()

    assert ground.command("inbox", "raise", item.id, "spawns=1").status == 0, ground.shown()
    work(ground)
    assert waiting(ground).agent == "helper", "the child was approved before"
    approve(ground)
    work(ground)

    assert [one.result for one in results(ground, "boss")] == ["helped"]
