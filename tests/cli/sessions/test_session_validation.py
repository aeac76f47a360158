"""Before a session is gone on with: what has to be as it was, and what is said when it is not."""

from __future__ import annotations

from typing import Any

import pytest

from cli.sessions.ranch import Ranch
from engine.bench import Bench, persistent
from nightherd.library.fleet import result_of
from nightherd.model.jobs.job import JobTexts
from nightherd.model.journal.event import AssistantEvent, Event, describe
from nightherd.model.journal.recollection import rebuilt_rows, recollect
from nightherd.model.journal.system import Complete, Init, Warned
from nightherd.testing.runtime import PlayedRuntime
from nightherd.views.jobs.document import result_document
from nightherd.views.jobs.jobs import own_job

AGENT = """\
agents:
  - name: keeper
    runtime: {runtime}
    default_prompt: go
    working_directory: {directory}
    session: {{mode: persistent, timeout: {timeout}}}
    script: [{{say: "turn ${{turn}}"}}, {{say: "turn ${{turn}}"}}]
"""


def declare(
    ranch: Ranch, *, directory: str = "one", timeout: str = "1h", runtime: str = "scripted"
) -> None:
    for name in ("one", "two"):
        (ranch.root / name).mkdir(exist_ok=True)
    text = AGENT.format(directory=directory, timeout=timeout, runtime=runtime)
    (ranch.root / "nightherd.yaml").write_text(text)


def events(ranch: Ranch, job_id: str) -> list[dict[str, Any]]:
    tailed = ranch.cli("jobs", "tail", job_id, "--json")
    return [document["data"] for document in tailed.documents]


def warnings(ranch: Ranch, job_id: str) -> list[str]:
    return [
        event["content"]
        for event in events(ranch, job_id)
        if event.get("subtype") == "warning" and event["extra"]["code"] == "session_not_resumed"
    ]


def test_nothing_is_said_when_everything_is_as_it_was(ranch: Ranch) -> None:
    declare(ranch)
    first = ranch.run("keeper")

    second = ranch.run("keeper")

    assert second["session_id"] == first["session_id"]
    assert warnings(ranch, second["job_id"]) == []


def test_another_working_directory_begins_anew_and_says_so(ranch: Ranch) -> None:
    declare(ranch)
    first = ranch.run("keeper")
    declare(ranch, directory="two")

    second = ranch.run("keeper")

    assert second["session_id"] != first["session_id"]
    (said,) = warnings(ranch, second["job_id"])
    assert first["session_id"] in said
    assert str(ranch.root / "one") in said
    assert str(ranch.root / "two") in said


def test_expired_session_begins_anew_and_says_so(ranch: Ranch) -> None:
    declare(ranch, timeout="1ms")
    first = ranch.run("keeper")

    second = ranch.run("keeper")

    assert second["session_id"] != first["session_id"]
    assert warnings(ranch, second["job_id"]) == [f"session {first['session_id']}: it has expired"]


def test_a_session_that_the_caller_names_is_trusted(ranch: Ranch) -> None:
    declare(ranch)
    first = ranch.run("keeper")
    declare(ranch, directory="two")

    second = ranch.run("keeper", "--resume", first["session_id"], "-p", "all the same")

    assert second["session_id"] == first["session_id"]


@pytest.mark.parametrize("words", [("--resume",), ("--fork",)])
def test_session_of_another_agent_is_refused(ranch: Ranch, words: tuple[str, ...]) -> None:
    session = ranch.run("memory")["session_id"]

    refused = ranch.cli("run", "fresh", *words, session, "-p", "tell me")

    assert refused.code == 5
    assert "belongs to agent 'memory'" in refused.err


def test_jobs_of_one_session_take_their_turns(ranch: Ranch) -> None:
    for number in range(3):
        assert ranch.cli("run", "memory", "-p", f"number {number}", "--detach").code == 0

    assert ranch.cli("worker", "--until-idle").code == 0

    (session,) = {job["session_id"] for job in ranch.data("jobs", "list")}
    asked = [text for text in ranch.texts(session) if text.startswith("number")]
    assert asked == ["number 0", "number 1", "number 2"]


def test_session_that_the_runtime_has_lost_begins_anew_and_says_so() -> None:
    lost = "claude has no session gone any more; a new one begins"
    answered = AssistantEvent(content="a", turn=1, index=0, end=True)
    first, second = (
        describe(Init(runtime="cli", runtime_session_id=name)) for name in ("gone", "new")
    )
    bench = Bench(
        agent=persistent(), runtime=PlayedRuntime([first, answered, describe(Complete())])
    )
    bench.run("one")
    warned = describe(Warned(code="session_not_found"), lost)
    bench.runtime = PlayedRuntime([warned, second, answered, describe(Complete())])

    job = bench.run("two")

    texts = bench.reader.find_texts(job.id)
    assert texts is not None
    seen = own_job(bench.reader, job, job.created_at)
    assert result_document(seen, texts)["session_note"] == lost
    assert result_of(seen, bench.reader, bench.context.journals).session_note == lost
    assert rebuilt(bench.journal(job.id)).session_note == lost


def rebuilt(journal: list[Event]) -> JobTexts:
    rows = rebuilt_rows(recollect(journal))
    assert rows is not None
    return rows.texts
