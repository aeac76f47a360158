"""Calls that a person decides about: asked once, run once, whoever is killed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench
from nightherd.engine.inbox.expiry import expire_items
from nightherd.engine.operations.agents import agents_of
from nightherd.engine.operations.inbox import Answered, answer_item
from nightherd.engine.operations.requests import Answer
from nightherd.errors import ForbiddenError, InvalidValueError, RefusedError
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.script import Fail, Say, Step, UseTool, compile_script
from nightherd.model.ids import JobId
from nightherd.model.inbox.item import (
    InboxItem,
    InboxQuery,
    ItemKind,
    ItemStatus,
    OnExpiry,
    Verdict,
)
from nightherd.model.inbox.review import (
    MOST_REPEATS,
    REPEATED_REJECTIONS,
    ApprovalRule,
    ApprovalTerms,
)
from nightherd.model.jobs.changes import CancelJob
from nightherd.model.jobs.job import Job, JobStatus, SuspendReason
from nightherd.model.journal.event import Event, SystemEvent, ToolResultEvent
from nightherd.model.journal.system import SystemSubtype
from nightherd.runtimes.scripted.runtime import ScriptedRuntime

PUSH = UseTool("Bash", {"command": "echo pushed >> pushes"})
RULE = ApprovalRule(tool="Bash(echo pushed:*)")
EVERYBODY = ApprovalTerms()


class Desk(Bench):
    """A bench with the scripted runtime, and a person who answers."""

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent=agent)
        runtime = ScriptedRuntime()
        self.context = replace(
            self.context, runtimes=lambda name: runtime, agents={agent.name: agent}
        )

    def waiting(self) -> list[InboxItem]:
        return list(self.reader.list_items(InboxQuery()))

    def answer(self, verdict: Verdict, by: str = "ada", **more: object) -> Answered:
        (item, *_) = self.waiting()
        request = Answer(item_id=item.id, verdict=verdict, by=by, via="test", **more)  # type: ignore[arg-type]

        async def go() -> Answered:
            return await answer_item(request, agents_of(self.context), self.context)

        return anyio.run(go)

    def results(self, job_id: JobId) -> list[ToolResultEvent]:
        return [one for one in self.journal(job_id) if isinstance(one, ToolResultEvent)]


@pytest.fixture
def make_desk(tmp_path: Path) -> Callable[..., Desk]:
    def make(*steps: Step, terms: ApprovalTerms = EVERYBODY, **more: object) -> Desk:
        agent = replace(
            AGENT,
            working_directory=str(tmp_path),
            permission_mode="bypassPermissions",
            script=compile_script(steps or (PUSH, Say("done"))),
            approvals=(replace(RULE, terms=terms),),
            **more,
        )
        return Desk(agent)

    return make


def pushes(tmp_path: Path) -> int:
    file = tmp_path / "pushes"
    return len(file.read_text().splitlines()) if file.exists() else 0


MakeDesk = Callable[..., Desk]


def test_a_call_that_needs_approval_suspends_the_job_before_it_runs(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk()

    job = desk.run()

    assert (job.status, job.suspend_reason) == (JobStatus.SUSPENDED, SuspendReason.APPROVAL)
    assert pushes(tmp_path) == 0
    (item,) = desk.waiting()
    assert (item.kind, item.job_id, item.tool) == (ItemKind.APPROVAL, job.id, "Bash")
    texts = desk.reader.find_item_texts(item.id)
    assert texts is not None
    assert texts.body["input"] == {"command": "echo pushed >> pushes"}


def test_an_approved_call_runs_once(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk()
    job = desk.run()

    answered = desk.answer(Verdict.APPROVE)
    assert answered.job is not None
    assert answered.job.status is JobStatus.PENDING
    ended = desk.execute(job.id)

    assert ended.status is JobStatus.COMPLETED
    assert pushes(tmp_path) == 1
    assert [one.success for one in desk.results(job.id)] == [True]
    assert desk.waiting() == []


def test_a_rejected_call_does_not_run_and_the_agent_is_given_the_reason(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk()
    job = desk.run()

    desk.answer(Verdict.REJECT, text="open a pull request")
    ended = desk.execute(job.id)

    assert ended.status is JobStatus.COMPLETED
    assert pushes(tmp_path) == 0
    (result,) = desk.results(job.id)
    assert result.success is False
    assert "rejected by ada: open a pull request" in (result.error or "")


def test_a_job_that_was_only_resumed_waits_again(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk()
    job = desk.run()
    desk.answer(Verdict.COMMENT, text="looks right, asking Bo")

    assert desk.job(job.id).status is JobStatus.SUSPENDED
    assert len(desk.waiting()) == 1
    assert pushes(tmp_path) == 0


def test_a_second_answer_is_refused_with_who_decided(make_desk: MakeDesk) -> None:
    desk = make_desk()
    desk.run()
    (item,) = desk.waiting()
    desk.answer(Verdict.APPROVE)
    late = Answer(item_id=item.id, verdict=Verdict.REJECT, by="bo", via="api")

    async def go() -> Answered:
        return await answer_item(late, agents_of(desk.context), desk.context)

    with pytest.raises(RefusedError, match=r"was approved by ada \(test\)"):
        anyio.run(go)


def test_a_quorum_needs_different_people(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk(terms=ApprovalTerms(quorum=2))
    job = desk.run()

    first = desk.answer(Verdict.APPROVE, by="ada")
    assert first.item.status is ItemStatus.PENDING
    with pytest.raises(RefusedError, match="ada has already approved"):
        desk.answer(Verdict.APPROVE, by="ada")
    desk.answer(Verdict.APPROVE, by="bo")
    desk.execute(job.id)

    assert pushes(tmp_path) == 1


def test_one_reject_decides_whatever_the_quorum(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk(terms=ApprovalTerms(quorum=3))
    job = desk.run()
    desk.answer(Verdict.APPROVE, by="ada")

    desk.answer(Verdict.REJECT, by="bo")
    desk.execute(job.id)

    assert pushes(tmp_path) == 0


def test_only_approvers_may_answer(make_desk: MakeDesk) -> None:
    desk = make_desk(terms=ApprovalTerms(approvers=("bo",)))
    desk.run()

    with pytest.raises(ForbiddenError, match="only bo may answer"):
        desk.answer(Verdict.APPROVE, by="ada")
    assert desk.answer(Verdict.APPROVE, by="bo").item.status is ItemStatus.APPROVED


def test_an_answer_for_what_was_shown_before_does_not_count(make_desk: MakeDesk) -> None:
    desk = make_desk()
    desk.run()

    with pytest.raises(RefusedError, match="has changed since it was shown"):
        desk.answer(Verdict.APPROVE, seen_hash="0" * 64)


def test_changed_arguments_run_instead_of_the_agents(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk()
    job = desk.run()

    desk.answer(Verdict.APPROVE, input={"command": "echo other >> others"})
    desk.execute(job.id)

    assert pushes(tmp_path) == 0
    assert (tmp_path / "others").read_text() == "other\n"
    (result,) = desk.results(job.id)
    assert "a person changed the arguments" in str(result.result)


def test_a_killed_worker_never_runs_an_approved_call_twice(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk()
    job = desk.run()
    desk.answer(Verdict.APPROVE)

    class KilledError(BaseException):
        """Stands for the end of the process."""

    def die(event: Event) -> None:
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.REVIEW:
            raise KilledError

    with pytest.raises((KilledError, BaseExceptionGroup)):
        desk.execute(job.id, die)
    desk.lose(job.id)
    ended = desk.execute(job.id)

    assert pushes(tmp_path) == 0
    (result,) = desk.results(job.id)
    assert "its outcome is unknown" in (result.error or "")
    assert ended.status is JobStatus.COMPLETED


def test_a_worker_killed_before_the_job_was_suspended_asks_once(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk()
    job_id = desk.submit().job.id

    class KilledError(Exception):
        """Stands for the end of the process."""

    def die(event: Event) -> None:
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.SUSPENDED:
            raise KilledError

    with pytest.raises((KilledError, BaseExceptionGroup)):
        desk.execute(job_id, die)
    assert desk.waiting() == []
    desk.lose(job_id)
    desk.execute(job_id)
    assert len(desk.waiting()) == 1
    desk.answer(Verdict.APPROVE)
    desk.execute(job_id)

    assert pushes(tmp_path) == 1


def test_an_unanswered_call_is_rejected_when_it_expires(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk(terms=ApprovalTerms(expires=timedelta(hours=1)))
    job = desk.run()
    assert anyio.run(expire_items, desk.context) == 0

    desk.clock.advance(timedelta(hours=2))
    assert anyio.run(expire_items, desk.context) == 1
    ended = desk.execute(job.id)

    assert ended.status is JobStatus.COMPLETED
    assert pushes(tmp_path) == 0


def test_an_unanswered_call_fails_the_job_where_the_rule_says_so(make_desk: MakeDesk) -> None:
    desk = make_desk(terms=ApprovalTerms(expires=timedelta(hours=1), on_expiry=OnExpiry.FAIL))
    job = desk.run()

    desk.clock.advance(timedelta(hours=2))
    anyio.run(expire_items, desk.context)

    assert desk.job(job.id).status is JobStatus.FAILED


def test_a_rejected_call_is_not_asked_again_and_ends_the_job_when_it_goes_on(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk(*([PUSH] * (MOST_REPEATS + 5)))
    job = desk.run()
    desk.answer(Verdict.REJECT, text="no")

    ended = desk.execute(job.id)

    assert (ended.status, ended.error_code) == (JobStatus.FAILED, REPEATED_REJECTIONS)
    assert pushes(tmp_path) == 0
    assert [item.kind for item in desk.waiting()] == [ItemKind.FAILURE]


def test_cancelling_a_job_closes_what_it_asked(make_desk: MakeDesk) -> None:
    desk = make_desk()
    job = desk.run()

    anyio.run(desk.store.apply, [CancelJob(job_id=job.id, at=desk.clock.now())])

    assert desk.waiting() == []
    (item,) = desk.reader.items_of_job(job.id)
    assert item.status is ItemStatus.CANCELLED


def test_a_question_is_answered_by_its_reply(make_desk: MakeDesk) -> None:
    ask = UseTool("ask_person", {"question": "Which server?", "options": ["staging", "live"]})
    desk = make_desk(ask, Say("thanks"), questions=True)
    job = desk.run()
    (item,) = desk.waiting()
    assert (item.kind, item.title) == (ItemKind.QUESTION, "Which server?")

    with pytest.raises(InvalidValueError, match="needs a text"):
        desk.answer(Verdict.REPLY)
    desk.answer(Verdict.REPLY, text="staging")
    ended = desk.execute(job.id)

    assert ended.status is JobStatus.COMPLETED
    (result,) = desk.results(job.id)
    assert result.result == "staging"


def test_an_agent_without_questions_has_nobody_to_ask(make_desk: MakeDesk) -> None:
    desk = make_desk(UseTool("ask_person", {"question": "Which server?"}), Say("on"))

    job = desk.run()

    assert job.status is JobStatus.COMPLETED
    (result,) = desk.results(job.id)
    assert "there is no tool ask_person" in (result.error or "")


def test_mode_review_asks_about_every_call_that_is_not_read_only(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    (tmp_path / "notes").write_text("a\n")
    desk = make_desk(
        UseTool("Read", {"file_path": "notes"}),
        UseTool("Write", {"file_path": "notes", "content": "b\n"}),
        operation="review",
    )
    job = desk.run()

    assert job.status is JobStatus.SUSPENDED
    (item,) = desk.waiting()
    texts = desk.reader.find_item_texts(item.id)
    assert texts is not None
    assert "-a\n+b\n" in texts.body["preview"]
    desk.answer(Verdict.APPROVE)
    assert desk.execute(job.id).status is JobStatus.COMPLETED
    assert (tmp_path / "notes").read_text() == "b\n"


def test_an_edit_is_asked_again_when_the_file_changed_before_the_answer(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    (tmp_path / "notes").write_text("a\n")
    desk = make_desk(UseTool("Write", {"file_path": "notes", "content": "b\n"}), operation="review")
    job: Job = desk.run()
    desk.answer(Verdict.APPROVE)
    (tmp_path / "notes").write_text("somebody was here\n")

    again = desk.execute(job.id)

    assert again.status is JobStatus.SUSPENDED
    assert (tmp_path / "notes").read_text() == "somebody was here\n"
    desk.answer(Verdict.APPROVE)
    assert desk.execute(job.id).status is JobStatus.COMPLETED
    assert (tmp_path / "notes").read_text() == "b\n"


def test_a_failed_job_waits_in_the_inbox_until_it_is_retried(make_desk: MakeDesk) -> None:
    desk = make_desk(Fail("boom", "it broke", False, None))
    job = desk.run()
    assert job.status is JobStatus.FAILED
    (item,) = desk.waiting()
    assert (item.kind, item.title) == (ItemKind.FAILURE, "it broke")

    answered = desk.answer(Verdict.RETRY)

    assert answered.item.status is ItemStatus.ANSWERED
    assert answered.job is not None
    assert answered.job.id != job.id
    assert answered.job.status is JobStatus.PENDING
    assert desk.waiting() == []
