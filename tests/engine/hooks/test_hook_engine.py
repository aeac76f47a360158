"""Hooks: due when their settings say so, on record, begun at most once, and able to fail a job."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from engine.bench import AGENT, Bench, hurried
from engine.hooks.played_hooks import (
    BROKEN,
    OTHER,
    PlayedCarrier,
    hook,
    hook_lines,
    submit_to,
    with_hooks,
)
from nightherd.engine.jobs.runner import run_taken_job
from nightherd.errors import FencedError
from nightherd.model.change import Applied
from nightherd.model.hooks import (
    AgentSubmission,
    HookEvent,
    HookPoint,
    Identity,
    at_path,
    event_of,
    is_due,
)
from nightherd.model.ids import JobId, WorkerId
from nightherd.model.jobs.changes import LoseExecution, StartExecution
from nightherd.model.jobs.job import (
    ExitReason,
    Job,
    JobQuery,
    JobStatus,
    SuspendReason,
    TriggerType,
)
from nightherd.model.jobs.repeat import INTERRUPTED_CALL
from nightherd.model.journal.event import ErrorEvent, Event, SystemEvent, ToolResultEvent, describe
from nightherd.model.journal.recollection import remembered
from nightherd.model.journal.system import HookRan, Resumed, Suspension, SystemSubtype
from nightherd.model.limits.limits import Limits
from nightherd.model.usage import Totals
from nightherd.ports import HookCall
from nightherd.testing.runtime import ANSWER, PlayedRuntime

FAILING = (ErrorEvent(message="no luck", code="bad_luck"),)
ALL = tuple(hook(point) for point in HookPoint if point is not HookPoint.LIMITS)


class Killed(BaseException):
    """The process was killed here."""


def killed_once(call: HookCall) -> None:
    raise Killed


def die_at_a_hook(event: Event) -> None:
    """Once its beginning is on record."""
    if isinstance(event, SystemEvent) and event.subtype is SystemSubtype.HOOK:
        raise Killed


def take_over(bench: Bench, job_id: JobId) -> Job:
    """The worker is gone; another takes the job and settles it."""

    async def go_on() -> Job:
        now = bench.clock.now()
        nothing = Totals()
        lost = LoseExecution(
            job_id=job_id, epoch=bench.job(job_id).epoch, at=now, reason="gone",
            max_restarts=9, last_seq=0, total=nothing, own=nothing,
        )  # fmt: skip
        start = StartExecution(job_id=job_id, worker=WorkerId("worker-bbbbbbbb"), at=now)
        _, answer = await bench.context.state.apply([lost, start])
        assert isinstance(answer, Applied)
        assert answer.job is not None
        return await run_taken_job(
            answer.job, bench.agent, bench.context, on_event=lambda event: None
        )

    return anyio.run(go_on)


@pytest.mark.parametrize(
    ("events", "ran"),
    [
        (ANSWER, ["completed/after_run[0]"]),
        (FAILING, ["failed/after_run[0]", "failed/on_error[0]"]),
    ],
)
def test_each_list_is_for_its_own_ends(events: tuple[Event, ...], ran: list[str]) -> None:
    carrier = PlayedCarrier()
    bench = with_hooks(Bench(PlayedRuntime(events)), carrier, *ALL)

    bench.run()

    assert carrier.ran == ran


def test_a_job_that_took_too_long_has_an_event_of_its_own() -> None:
    carrier = PlayedCarrier()
    bench = Bench(PlayedRuntime((), is_endless=True), agent=hurried(timedelta(milliseconds=20)))
    with_hooks(bench, carrier, *ALL)

    job = bench.run()

    assert job.exit_reason is ExitReason.TIMEOUT
    assert carrier.ran == ["timeout/after_run[0]", "timeout/on_error[0]"]


def test_hooks_of_a_cancelled_job_run_too() -> None:
    carrier = PlayedCarrier()
    bench = with_hooks(Bench(PlayedRuntime((), is_endless=True)), carrier, *ALL)
    job_id = bench.submit().job.id

    job = bench.execute(job_id, stop_when=lambda event: event is not None)

    assert job.status is JobStatus.CANCELLED
    assert carrier.ran == ["cancelled/after_run[0]", "cancelled/on_cancel[0]"]


def test_hooks_run_for_every_trigger_alike() -> None:
    carrier = PlayedCarrier()
    bench = with_hooks(Bench(), carrier, hook())

    for trigger in TriggerType:
        bench.run(trigger_type=trigger)

    assert [one["job"]["trigger_type"] for one in carrier.contexts] == list(TriggerType)


def test_a_hook_is_told_the_job_as_it_ends() -> None:
    carrier = PlayedCarrier(metadata={"ticket": 7})
    bench = Bench(agent=replace(AGENT, identity=Identity(name="Night", role="guard")))
    with_hooks(bench, carrier, hook(name="tell"))

    job = bench.run()

    (context,) = carrier.contexts
    assert context["schema"] == "nightherd/v1/hook"
    assert context["event"] == "completed"
    assert context["hook"] == {"id": "after_run[0]", "name": "tell"}
    assert context["job"]["id"] == job.id
    assert (context["job"]["status"], context["job"]["turns"]) == ("completed", 1)
    assert context["result"] == {"success": True, "output": "done", "error": None}
    assert context["agent"]["name"] == "coder"
    assert context["agent"]["identity"] == {"name": "Night", "role": "guard", "personality": None}
    assert context["metadata"] == {"ticket": 7}


def test_results_are_on_record_before_the_end_of_the_job() -> None:
    carrier = PlayedCarrier(results={"after_run[1]": BROKEN})
    bench = with_hooks(Bench(), carrier, hook(name="first"), hook(place=1))

    job = bench.run()

    assert [(ran.name, ran.event, ran.success) for ran in hook_lines(bench, job.id)] == [
        ("first", "completed", None),
        ("first", "completed", True),
        ("after_run[1]", "completed", None),
        ("after_run[1]", "completed", False),
    ]
    last = bench.journal(job.id)[-1]
    assert isinstance(last, SystemEvent)
    assert last.subtype is SystemSubtype.END
    assert job.status is JobStatus.COMPLETED


def test_a_hook_that_must_succeed_fails_the_job_really() -> None:
    carrier = PlayedCarrier(results={"after_run[0]": BROKEN})
    needed = hook(name="publish", continue_on_error=False)
    bench = with_hooks(Bench(), carrier, needed, hook(place=1), hook(HookPoint.ON_ERROR))

    job = bench.run()

    assert (job.status, job.exit_reason, job.error_code) == (
        JobStatus.FAILED,
        ExitReason.ERROR,
        "hook_failed",
    )
    assert job.error == "the hook publish failed: exit code 1"
    assert carrier.ran == ["completed/after_run[0]", "failed/on_error[0]"]
    assert carrier.contexts[-1]["result"]["error"] == job.error


def test_a_cancelled_job_stays_cancelled_whatever_its_hooks_do() -> None:
    carrier = PlayedCarrier(results={"on_cancel[0]": BROKEN})
    needed = hook(HookPoint.ON_CANCEL, continue_on_error=False)
    bench = with_hooks(Bench(PlayedRuntime((), is_endless=True)), carrier, needed)

    job = bench.execute(bench.submit().job.id, stop_when=lambda event: event is not None)

    assert job.status is JobStatus.CANCELLED


@pytest.mark.parametrize(
    ("more", "is_run"),
    [
        ({"on": frozenset({"failed"})}, False),
        ({"on": frozenset({"failed", "completed"})}, True),
        ({"when": "result.success"}, True),
        ({"when": "result.error"}, False),
        ({"when": "metadata.pages.0.changed"}, True),
        ({"when": "metadata.pages.5.changed"}, False),
        ({"when": "metadata.nothing.here"}, False),
    ],
)
def test_events_and_conditions_decide(more: dict[str, Any], is_run: bool) -> None:
    carrier = PlayedCarrier(metadata={"pages": [{"changed": True}]})
    bench = with_hooks(Bench(), carrier, hook(**more))

    bench.run()

    assert bool(carrier.calls) is is_run


def test_a_hook_that_raises_is_a_hook_that_failed() -> None:
    def trouble(call: HookCall) -> None:
        raise OSError("out of files")

    bench = with_hooks(Bench(), PlayedCarrier(before=trouble), hook())

    job = bench.run()

    assert job.status is JobStatus.COMPLETED
    assert hook_lines(bench, job.id)[-1].error == "OSError: out of files"


def test_secrets_in_what_a_hook_prints_are_masked() -> None:
    carrier = PlayedCarrier(results={"after_run[0]": replace(BROKEN, output="key is sk-12345678")})
    bench = with_hooks(Bench(environment={"API_KEY": "sk-12345678"}), carrier, hook())

    job = bench.run()

    assert hook_lines(bench, job.id)[-1].output == "key is [secret:API_KEY]"


def test_an_agent_is_submitted_once_with_what_happened() -> None:
    submission = hook(action=AgentSubmission(agent="other", inputs={"event": "mine"}))
    bench = with_hooks(Bench(), PlayedCarrier(), submission, others=(OTHER,))

    job = bench.run()

    newest, *_ = bench.reader.list_jobs(JobQuery(agent="other"))
    texts = bench.reader.find_texts(newest.id)
    assert texts is not None
    assert texts.prompt == f"About {job.id}: mine"
    assert (newest.trigger_type, newest.trigger_id) == (TriggerType.SPAWNED, job.id)
    assert hook_lines(bench, job.id)[-1].job_id == newest.id


def test_an_agent_without_a_prompt_is_told_what_happened() -> None:
    mute = replace(OTHER, default_prompt=None)
    submission = hook(action=AgentSubmission(agent="other"))
    bench = with_hooks(Bench(), PlayedCarrier(), submission, others=(mute,))

    job = bench.run()

    (made,) = bench.reader.list_jobs(JobQuery(agent="other"))
    texts = bench.reader.find_texts(made.id)
    assert texts is not None
    assert texts.prompt == f"Job {job.id} of coder: completed.\n\ndone"


def test_an_agent_that_is_not_there_is_a_hook_that_failed() -> None:
    submission = hook(action=AgentSubmission(agent="ghost"))
    bench = with_hooks(Bench(), PlayedCarrier(), submission)

    job = bench.run()

    assert hook_lines(bench, job.id)[-1].error == "the fleet has no agent 'ghost'"


def test_agents_that_submit_themselves_come_to_an_end() -> None:
    submission = hook(action=AgentSubmission(agent="coder", inputs={"issue": "1"}))
    bench = with_hooks(Bench(), PlayedCarrier(), submission)

    bench.run()
    for _ in range(20):
        waiting = bench.reader.list_jobs(JobQuery(status=JobStatus.PENDING))
        if not waiting:
            break
        bench.execute(waiting[0].id)

    jobs = bench.reader.list_jobs(JobQuery(limit=100))
    assert len(jobs) == 9
    assert "descend from one another" in str(hook_lines(bench, jobs[0].id)[-1].error)


def test_whoever_is_asked_about_a_limit_and_waits_at_one_asks_nobody_else() -> None:
    asking = hook(
        HookPoint.LIMITS,
        action=AgentSubmission(agent="coder", inputs={"issue": "1"}),
        on=frozenset({SuspendReason.BUDGET.value}),
    )
    asking = replace(asking, id="fleet.limits.hooks[0]")
    bench = with_hooks(Bench(), PlayedCarrier(), asking)
    bench.context = replace(bench.context, budget=Limits(turns=0))

    first = bench.run()
    (asked,) = bench.reader.list_jobs(JobQuery(status=JobStatus.PENDING))
    asked = bench.execute(asked.id)

    assert (first.suspend_reason, asked.suspend_reason) == (SuspendReason.BUDGET,) * 2
    assert len(bench.reader.list_jobs(JobQuery(limit=100))) == 2


def test_a_hook_cut_off_with_its_worker_is_told_and_not_begun_again() -> None:
    carrier = PlayedCarrier(before=killed_once)
    runtime = PlayedRuntime()
    bench = with_hooks(Bench(runtime), carrier, hook(), hook(place=1))
    job_id = bench.submit().job.id
    with pytest.raises(Killed):
        bench.execute(job_id)
    carrier.before = lambda call: None

    job = take_over(bench, job_id)

    assert job.status is JobStatus.COMPLETED
    assert len(runtime.requests) == 1, "the runtime had had its last word"
    assert carrier.ran == ["completed/after_run[0]", "completed/after_run[1]"]
    lines = hook_lines(bench, job_id)
    assert [(ran.id, ran.success, ran.is_interrupted) for ran in lines] == [
        ("after_run[0]", None, False),
        ("after_run[0]", False, True),
        ("after_run[1]", None, False),
        ("after_run[1]", True, False),
    ]


def test_a_hook_that_may_be_repeated_is_begun_again() -> None:
    carrier = PlayedCarrier(before=killed_once)
    bench = with_hooks(Bench(), carrier, hook(retry=True))
    job_id = bench.submit().job.id
    with pytest.raises(Killed):
        bench.execute(job_id)
    carrier.before = lambda call: None

    take_over(bench, job_id)

    assert carrier.ran == ["completed/after_run[0]"] * 2
    assert [ran.success for ran in hook_lines(bench, job_id)] == [None, None, True]


def test_an_agent_whose_submission_was_cut_off_is_submitted_all_the_same() -> None:
    """It makes the same job however often it is done: nobody has to wonder how far it came."""
    asked = hook(HookPoint.ON_ERROR, action=AgentSubmission(agent="other"))
    bench = with_hooks(Bench(PlayedRuntime(FAILING)), PlayedCarrier(), asked, others=(OTHER,))
    job_id = bench.submit().job.id
    with pytest.raises(Killed):
        bench.execute(job_id, on_event=die_at_a_hook)

    job = take_over(bench, job_id)

    assert job.status is JobStatus.FAILED
    (submitted,) = [one for one in bench.reader.list_jobs(JobQuery()) if one.agent == "other"]
    assert hook_lines(bench, job_id)[-1].job_id == submitted.id


def test_a_hook_that_is_done_is_not_done_again_after_a_crash() -> None:
    carrier = PlayedCarrier(results={"after_run[0]": BROKEN})
    needed = hook(continue_on_error=False)
    bench = with_hooks(Bench(), carrier, needed, hook(HookPoint.ON_ERROR, retry=False))
    job_id = bench.submit().job.id
    carrier.before = lambda call: killed_once(call) if "on_error" in call.id else None
    with pytest.raises(Killed):
        bench.execute(job_id)
    carrier.before = lambda call: None

    job = take_over(bench, job_id)

    assert (job.status, job.error_code) == (JobStatus.FAILED, "hook_failed")
    assert job.error == "the hook after_run[0] failed: exit code 1"
    assert carrier.ran == ["completed/after_run[0]", "failed/on_error[0]"]


def test_a_cancelled_job_whose_worker_was_lost_among_its_hooks_is_still_cancelled() -> None:
    carrier = PlayedCarrier(before=killed_once)
    runtime = PlayedRuntime((), is_endless=True)
    bench = with_hooks(Bench(runtime), carrier, hook(HookPoint.ON_CANCEL))
    job_id = bench.submit().job.id
    with pytest.raises(Killed):
        bench.execute(job_id, stop_when=lambda event: event is not None)

    job = take_over(bench, job_id)

    assert job.status is JobStatus.CANCELLED
    assert len(runtime.requests) == 1


def test_a_hook_that_ended_with_a_frozen_worker_gives_its_job_back() -> None:
    def lose(call: HookCall) -> None:
        raise FencedError("the lease is over")

    bench = with_hooks(Bench(), PlayedCarrier(before=lose), hook())
    job_id = bench.submit().job.id

    with pytest.raises(FencedError):
        bench.execute(job_id)

    # The lease goes on, so nobody else would take it.
    assert bench.job(job_id).status is JobStatus.PENDING


def test_waits_are_told_apart_and_ends_are_not() -> None:
    ran = describe(HookRan(name="a", id="on_suspend[0]", event="suspended", success=True))
    ended = describe(HookRan(name="b", id="after_run[0]", event="completed", success=True))
    foreign = describe(HookRan(name="c", event="Stop", success=True))
    again = ANSWER[0]
    suspended, resumed = (
        describe(Suspension(reason=SuspendReason.LIMIT)),
        describe(Resumed(reason="suspended")),
    )
    cut_off = ToolResultEvent(tool_use_id="a", success=False, error=INTERRUPTED_CALL, end=True)

    assert set(remembered([ran, foreign], HookEvent.SUSPENDED)) == {"on_suspend[0]"}
    assert remembered([ran, again], HookEvent.SUSPENDED) == {}
    assert set(remembered([ran, resumed], HookEvent.SUSPENDED)) == {"on_suspend[0]"}
    assert set(remembered([ran, suspended], HookEvent.SUSPENDED)) == {"on_suspend[0]"}
    assert remembered([ran, suspended, resumed], HookEvent.SUSPENDED) == {}
    assert set(remembered([ran, cut_off], HookEvent.SUSPENDED)) == {"on_suspend[0]"}
    assert set(remembered([ended, again, foreign], HookEvent.COMPLETED)) == {"after_run[0]"}


def test_reasons_of_waiting_are_events_of_limits() -> None:
    bench = Bench()
    job = replace(
        bench.job(submit_to(bench, AGENT)),
        status=JobStatus.SUSPENDED,
        suspend_reason=SuspendReason.BUDGET,
    )
    event = event_of(job)
    assert event is HookEvent.SUSPENDED

    budget, limit = (hook(HookPoint.LIMITS, on=frozenset({word})) for word in ("budget", "limit"))

    assert is_due(budget, event, job, {})
    assert not is_due(limit, event, job, {})
    assert event_of(replace(job, status=JobStatus.RUNNING)) is None


def test_paths_lead_through_maps_and_lists_only() -> None:
    assert at_path({"a": [{"b": 0}]}, "a.0.b") == 0
    assert at_path({"a": "text"}, "a.b") is None
    assert at_path([1], "-1") is None
