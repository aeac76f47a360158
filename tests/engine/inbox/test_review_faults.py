"""Reviews under fault: changed rules, lost journals, cancels and hostile input. No call runs twice or unasked."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import AGENT
from engine.inbox.test_reviews import PUSH, RULE, Desk, pushes
from nightherd.engine.doctor.record import RepairContext
from nightherd.engine.jobs.lost_execution import change_after_loss
from nightherd.errors import InvalidValueError, RefusedError
from nightherd.model.agents.script import Say, Step, UseTool, compile_script
from nightherd.model.change import Change, Refused, Why
from nightherd.model.ids import JobId
from nightherd.model.inbox.changes import WithdrawItem
from nightherd.model.inbox.item import Verdict
from nightherd.model.inbox.review import MOST_REPEATS, ApprovalRule, ApprovalTerms
from nightherd.model.jobs.changes import CancelJob, ResumeJob, SuspendExecution
from nightherd.model.jobs.job import JobStatus
from nightherd.model.journal.event import Event, SystemEvent
from nightherd.model.journal.recollection import recollect
from nightherd.model.journal.system import SystemSubtype
from nightherd.model.secrets import find_secrets
from nightherd.runtimes.review import preview_of
from nightherd.runtimes.scripted.runtime import ScriptedRuntime
from nightherd.runtimes.tools.tool import ToolContext, ToolOutcome
from nightherd.testing.memory_journals import MemoryJournals

MakeDesk = Callable[..., Desk]


class KilledError(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def make_desk(tmp_path: Path) -> MakeDesk:
    def make(*steps: Step, rule: ApprovalRule = RULE, **more: object) -> Desk:
        agent = replace(
            AGENT,
            working_directory=str(tmp_path),
            permission_mode="bypassPermissions",
            script=compile_script(steps or (PUSH, Say("done"))),
            approvals=(rule,),
            **more,
        )
        return Desk(agent)

    return make


def dying_at(subtype: SystemSubtype, status: str | None = None) -> Callable[[Event], None]:
    """Kill whoever records such a line, right after it."""

    def die(event: Event) -> None:
        if not isinstance(event, SystemEvent) or event.subtype is not subtype:
            return
        if status is None or (event.extra or {}).get("status") == status:
            raise KilledError

    return die


def execute_and_die(desk: Desk, job_id: JobId, die: Callable[[Event], None]) -> None:
    with pytest.raises((KilledError, BaseExceptionGroup)):
        desk.execute(job_id, die)


def change_rules(desk: Desk, *rules: ApprovalRule) -> None:
    """What the fleet file says from now on."""
    desk.agent = replace(desk.agent, approvals=rules)
    desk.context = replace(desk.context, agents={desk.agent.name: desk.agent})


def apply_at_once(desk: Desk, change: Change) -> None:
    """Apply a change in the midst of a run; a store in memory waits for nothing."""
    with suppress(StopIteration):
        desk.store.apply([change]).send(None)


class DyingTool:
    """Bash that does its work and then dies with its process."""

    name, starts_processes, is_read_only = "Bash", False, False

    def __init__(self, directory: Path) -> None:
        self._file = directory / "pushes"
        self.is_deadly = True

    async def run(self, input: object, context: ToolContext) -> ToolOutcome:
        with self._file.open("a") as file:
            file.write("pushed\n")
        if self.is_deadly:
            raise KilledError
        return ToolOutcome(result="")


def test_a_call_that_is_allowed_by_new_rules_runs_once_though_its_worker_is_killed(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk, tool = make_desk(), DyingTool(tmp_path)
    runtime = ScriptedRuntime(tools=[tool])
    desk.context = replace(desk.context, runtimes=lambda name: runtime)
    job = desk.run()
    desk.answer(Verdict.APPROVE)
    change_rules(desk)

    with pytest.raises((KilledError, BaseExceptionGroup)):
        desk.execute(job.id)
    desk.lose(job.id)
    tool.is_deadly = False
    desk.execute(job.id)

    assert pushes(tmp_path) == 1
    (result,) = desk.results(job.id)
    assert "its outcome is unknown" in (result.error or "")


def test_a_rejection_counts_though_the_rules_allow_the_call_by_now(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk()
    job = desk.run()
    desk.answer(Verdict.REJECT, text="not on a Friday")
    change_rules(desk)

    desk.execute(job.id)

    assert pushes(tmp_path) == 0
    (result,) = desk.results(job.id)
    assert "not on a Friday" in (result.error or "")


def test_a_job_killed_after_its_last_line_asks_and_never_waits_for_nobody(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk()
    job_id = desk.submit().job.id
    execute_and_die(desk, job_id, dying_at(SystemSubtype.SUSPENDED))
    known = recollect(desk.context.journals.read(job_id))
    assert known.suspended is not None

    record = RepairContext(
        state=desk.store,
        reader=desk.reader,
        journals=desk.context.journals,
        clock=desk.clock,
        is_alive=lambda process: False,
    )
    change = change_after_loss(desk.job(job_id), known, record, max_restarts=5)
    assert not isinstance(change, SuspendExecution)
    anyio.run(desk.store.apply, [change])
    desk.execute(job_id)

    assert len(desk.waiting()) == 1
    desk.answer(Verdict.APPROVE)
    desk.execute(job_id)
    assert pushes(tmp_path) == 1


def test_a_lost_journal_makes_an_old_approval_worthless(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk()
    job = desk.run()
    desk.answer(Verdict.APPROVE)
    execute_and_die(desk, job.id, dying_at(SystemSubtype.REVIEW, "approved"))
    desk.lose(job.id)
    desk.context = replace(desk.context, journals=MemoryJournals(clock=desk.clock))

    again = desk.execute(job.id)

    assert again.status is JobStatus.SUSPENDED, (
        "whether the approved call ran is not known any more"
    )
    assert len(desk.waiting()) == 1
    assert pushes(tmp_path) == 0


def test_a_cancel_between_the_answer_and_the_call_counts(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk()
    job = desk.run()
    desk.answer(Verdict.APPROVE)

    def cancel(event: Event) -> None:
        if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.INIT:
            apply_at_once(desk, CancelJob(job_id=job.id, at=desk.clock.now()))

    ended = desk.execute(job.id, cancel)

    assert ended.status is JobStatus.CANCELLED
    assert pushes(tmp_path) == 0


def write(content: str) -> UseTool:
    return UseTool("Write", {"file_path": "notes", "content": content})


def test_an_edit_that_is_as_it_was_first_shown_is_asked_about_again(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.write_text("a\n")
    desk = make_desk(write("b\n"), operation="review")
    job = desk.run()
    desk.answer(Verdict.APPROVE)
    notes.write_text("c\n")
    desk.execute(job.id)
    desk.answer(Verdict.APPROVE)
    notes.write_text("a\n")

    again = desk.execute(job.id)

    assert again.status is JobStatus.SUSPENDED, "the newest question counts, not the first"
    desk.answer(Verdict.APPROVE)
    assert desk.execute(job.id).status is JobStatus.COMPLETED
    assert notes.read_text() == "b\n"


def test_a_superseded_question_is_no_rejection(make_desk: MakeDesk, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.write_text("a\n")
    desk = make_desk(write("b\n"), operation="review")
    job = desk.run()
    (item,) = desk.waiting()
    anyio.run(desk.store.apply, [WithdrawItem(item_id=item.id, at=desk.clock.now())])
    apply_at_once(desk, ResumeJob(job_id=job.id, at=desk.clock.now()))

    again = desk.execute(job.id)

    assert again.status is JobStatus.SUSPENDED
    (asked,) = desk.waiting()
    assert asked.id != item.id


def test_an_execution_that_lost_the_job_withdraws_nothing(make_desk: MakeDesk) -> None:
    desk = make_desk()
    job = desk.run()
    (item,) = desk.waiting()
    late = WithdrawItem(item_id=item.id, at=desk.clock.now(), job_id=job.id, epoch=job.epoch - 1)

    (answer,) = anyio.run(desk.store.apply, [late])

    assert isinstance(answer, Refused)
    assert answer.why is Why.FENCED
    assert desk.waiting() == [item]


def test_approved_calls_do_not_count_as_rejected_ones(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk(*([PUSH] * (MOST_REPEATS + 3)), Say("done"))
    job = desk.run()
    for _ in range(MOST_REPEATS + 1):
        desk.answer(Verdict.APPROVE)
        desk.execute(job.id)
    desk.answer(Verdict.REJECT, text="enough")

    ended = desk.execute(job.id)

    assert ended.status is JobStatus.COMPLETED, ended.error
    assert pushes(tmp_path) == MOST_REPEATS + 1


def test_a_quorum_is_for_the_same_arguments(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk(rule=replace(RULE, terms=ApprovalTerms(quorum=2)))
    job = desk.run()

    with pytest.raises(RefusedError, match="approve the same arguments"):
        desk.answer(Verdict.APPROVE, by="ada", input={"command": "echo other >> others"})
    desk.answer(Verdict.APPROVE, by="ada")
    with pytest.raises(RefusedError, match="approve the same arguments"):
        desk.answer(Verdict.APPROVE, by="bo", input={"command": "echo other >> others"})
    desk.answer(Verdict.APPROVE, by="bo")
    desk.execute(job.id)

    assert pushes(tmp_path) == 1


def test_arguments_that_a_person_changed_to_denied_ones_do_not_run(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk(denied_tools=("Bash(echo secret:*)",))
    job = desk.run()
    desk.answer(Verdict.APPROVE, input={"command": "echo secret >> secrets"})

    desk.execute(job.id)

    assert not (tmp_path / "secrets").exists()
    (result,) = desk.results(job.id)
    assert "with the arguments that a person changed" in (result.error or "")


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo correct-horse", "hold a secret"),
        ("echo [secret:TOKEN]", "would run as it is written"),
        ("echo \ud800", "half a character"),
        ("echo " + "x" * 1024 * 1024, "at most 1,048,576 characters"),
    ],
)
def test_changed_arguments_that_cannot_be_recorded_are_refused(
    make_desk: MakeDesk, command: str, why: str
) -> None:
    desk = make_desk()
    desk.context = replace(desk.context, secrets=find_secrets({"TOKEN": "correct-horse"}))
    desk.run()

    with pytest.raises(InvalidValueError, match=why):
        desk.answer(Verdict.APPROVE, input={"command": command})

    assert len(desk.waiting()) == 1


def test_secrets_are_masked_before_anything_is_cut_or_put_on_one_line(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    secret = "first line of it\nsecond line of it"
    filler = "x" * (64 * 1024 - 10)
    command = f"echo pushed {secret!r}"
    desk = make_desk(
        UseTool("Bash", {"command": command.replace("\\n", "\n"), "description": filler + secret})
    )
    desk.context = replace(desk.context, secrets=find_secrets({"DEPLOY_KEY": secret}))

    desk.run()

    (item,) = desk.waiting()
    texts = desk.reader.find_item_texts(item.id)
    assert texts is not None
    assert "line of it" not in item.title
    assert "[secret:DEPLOY_KEY]" in item.title
    assert "first" not in str(texts.body)


def test_half_characters_and_huge_inputs_can_be_asked_about(make_desk: MakeDesk) -> None:
    many = {f"key-{n}": "x" * 60_000 for n in range(100)}
    desk = make_desk(UseTool("Bash", {"command": "echo pushed \ud800", "more": many}))

    job = desk.run()

    assert job.status is JobStatus.SUSPENDED
    (item,) = desk.waiting()
    item.title.encode()
    texts = desk.reader.find_item_texts(item.id)
    assert texts is not None
    assert len(str(texts.body).encode()) < 512 * 1024


def test_the_hash_of_a_long_diff_is_of_all_of_it(make_desk: MakeDesk, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    lines = [f"line {number}\n" for number in range(20_000)]
    notes.write_text("".join(lines))
    desk = make_desk(write("".join(line.upper() for line in lines)), operation="review")
    job = desk.run()
    desk.answer(Verdict.APPROVE)
    notes.write_text("".join([*lines[:-1], "somebody was here\n"]))

    assert desk.execute(job.id).status is JobStatus.SUSPENDED


def test_a_diff_of_a_pipe_a_device_or_a_circle_of_links_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to("circle")
    for name in ("pipe", "/dev/zero", "circle", "nul\0", "x" * 5_000, ""):
        assert preview_of("Write", {"file_path": name, "content": "b"}, str(tmp_path)) is None, name


def test_a_diff_names_the_file_behind_a_link_and_cannot_be_forged(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    work.mkdir()
    outside.write_text("a\n")
    (work / "link").symlink_to(outside)
    (work / "x\n+forged").write_text("a\n")

    def shown(name: str) -> str:
        return preview_of("Write", {"file_path": name, "content": "b\n"}, str(work)) or ""

    assert shown("link").startswith(f"--- {outside}\n+++ {outside}\n")
    assert "\n+forged" not in shown("x\n+forged")
    assert shown("new") == "--- new\n+++ new\n@@ -0,0 +1 @@\n+b\n"


def test_a_diff_of_many_changed_lines_is_made_at_once(tmp_path: Path) -> None:
    before = [f"{number % 150}\n" for number in range(50_000)]
    (tmp_path / "notes").write_text("".join(["same\n", *before, "end\n"]))
    after = "".join(["same\n", *(f"{number % 151}\n" for number in range(50_000)), "end\n"])

    shown = preview_of("Write", {"file_path": "notes", "content": after}, str(tmp_path)) or ""

    assert shown.count("\n") <= 100_003
    assert "-same" not in shown


def test_an_edit_that_would_fail_shows_no_diff(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("a a\n")
    twice = {"file_path": "notes", "old_string": "a", "new_string": "b"}

    assert preview_of("Edit", twice, str(tmp_path)) is None
    assert "+b b" in (preview_of("Edit", {**twice, "replace_all": True}, str(tmp_path)) or "")
