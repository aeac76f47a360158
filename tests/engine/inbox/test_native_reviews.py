"""Native agents: several calls in one answer, of which some wait for a person."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.bench import AGENT
from engine.inbox.test_review_faults import dying_at, execute_and_die
from engine.inbox.test_reviews import Desk
from nightherd.model.inbox.item import ItemStatus, Verdict
from nightherd.model.inbox.review import ApprovalRule
from nightherd.model.jobs.job import JobStatus
from nightherd.model.journal.system import SystemSubtype
from nightherd.runtimes.native.capabilities import NATIVE
from nightherd.runtimes.native.runtime import NativeRuntime
from runtimes.native.native_stage import QUICK, Replies, calls, says

PUSH = ("Bash", {"command": "echo pushed >> pushes"})
MakeDesk = Callable[..., tuple[Desk, Replies]]


@pytest.fixture
def make_desk(tmp_path: Path) -> MakeDesk:
    def make(
        *wanted: tuple[str, object], rule: str = "Bash(echo pushed:*)"
    ) -> tuple[Desk, Replies]:
        model = Replies(calls(*wanted), says("done"))
        agent = replace(
            AGENT,
            runtime=NATIVE,
            model="anthropic:claude-sonnet-5-5",
            working_directory=str(tmp_path),
            permission_mode="bypassPermissions",
            approvals=(ApprovalRule(tool=rule),),
        )
        desk = Desk(agent)
        runtime = NativeRuntime(model=model, grace=QUICK)
        desk.context = replace(desk.context, runtimes=lambda name: runtime)
        return desk, model

    return make


def read(name: str) -> tuple[str, object]:
    return ("Read", {"file_path": name})


def write(name: str, content: str) -> tuple[str, object]:
    return ("Write", {"file_path": name, "content": content})


def lines(file: Path) -> int:
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_calls_before_the_one_that_waits_are_made_and_those_after_it_are_not(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk, model = make_desk(write("before", "b"), PUSH, write("after", "a"))

    job = desk.run()

    assert job.status is JobStatus.SUSPENDED
    assert (tmp_path / "before").exists()
    assert not (tmp_path / "after").exists(), "it may depend on what was approved"
    desk.answer(Verdict.APPROVE)
    assert desk.execute(job.id).status is JobStatus.COMPLETED
    assert (tmp_path / "after").exists()
    assert lines(tmp_path / "pushes") == 1
    assert [one.tool_use_id for one in desk.results(job.id)] == ["call-0", "call-1", "call-2"]
    assert len(model.asked) == 2, "the model is not asked again for what it said"


def test_calls_that_only_look_do_not_wait_for_one_that_does(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    for name in ("open", "secret"):
        (tmp_path / name).write_text(name)
    desk, _ = make_desk(read("secret"), read("open"), rule="Read(secret)")

    job = desk.run()

    assert [one.result for one in desk.results(job.id)] == ["open"]
    desk.answer(Verdict.APPROVE)
    assert desk.execute(job.id).status is JobStatus.COMPLETED
    assert [one.result for one in desk.results(job.id)] == ["open", "secret"]


def test_several_calls_that_wait_together_are_asked_about_together(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / name).write_text(name)
    desk, _ = make_desk(read("one"), read("two"), read("three"), rule="Read")
    job = desk.run()
    assert len(desk.waiting()) == 3

    desk.answer(Verdict.APPROVE)
    rejected = desk.answer(Verdict.REJECT, text="not that").item.tool_use_id
    assert desk.job(job.id).status is JobStatus.SUSPENDED, "one is open"
    desk.answer(Verdict.APPROVE)
    assert desk.execute(job.id).status is JobStatus.COMPLETED

    shown = {one.tool_use_id: one.result for one in desk.results(job.id) if one.success}
    contents = {"call-0": "one", "call-1": "two", "call-2": "three"}
    assert shown == {call: text for call, text in contents.items() if call != rejected}


def test_the_same_call_twice_in_one_answer_needs_two_approvals(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk, _ = make_desk(PUSH, PUSH)
    job = desk.run()

    desk.answer(Verdict.APPROVE)
    assert desk.execute(job.id).status is JobStatus.SUSPENDED
    assert lines(tmp_path / "pushes") == 1
    desk.answer(Verdict.APPROVE)
    assert desk.execute(job.id).status is JobStatus.COMPLETED

    assert lines(tmp_path / "pushes") == 2


def test_a_worker_killed_at_the_approved_call_makes_the_calls_after_it(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk, _ = make_desk(PUSH, write("after", "a"))
    job = desk.run()
    desk.answer(Verdict.APPROVE)

    execute_and_die(desk, job.id, dying_at(SystemSubtype.REVIEW, "approved"))
    desk.lose(job.id)
    ended = desk.execute(job.id)

    assert ended.status is JobStatus.COMPLETED
    assert lines(tmp_path / "pushes") == 0
    assert (tmp_path / "after").exists()
    first, second = desk.results(job.id)
    assert "its outcome is unknown" in (first.error or "")
    assert second.success


def test_a_worker_killed_between_two_waiting_calls_asks_about_both_once(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    desk, _ = make_desk(read("one"), read("two"), rule="Read")
    job_id = desk.submit().job.id

    execute_and_die(desk, job_id, dying_at(SystemSubtype.REVIEW, "pending"))
    assert desk.waiting() == []
    desk.lose(job_id)
    desk.execute(job_id)

    assert len(desk.waiting()) == 2
    for _ in range(2):
        desk.answer(Verdict.APPROVE)
    assert desk.execute(job_id).status is JobStatus.COMPLETED
    assert {one.status for one in desk.reader.items_of_job(job_id)} == {ItemStatus.APPROVED}
    assert [one.success for one in desk.results(job_id)] == [True, True]
