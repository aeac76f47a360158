"""Jobs over HTTP: the same documents as the command line's, durable before they are answered, once per key."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import anyio
import pytest

from nightherd.host.process import boot_id
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import JobQuery
from nightherd.model.sessions.session import SessionMode
from nightherd.web.read_in_thread import until_text
from web.web_world import served, until


def test_lists_are_the_command_lines_documents_in_pages(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            ids = [await world.submit(prompt=str(number)) for number in range(5)]

            first = (await world.get("/v1/jobs?limit=2")).document
            rest = (await world.get(f"/v1/jobs?limit=10&before={first['next_before']}")).document

            assert first["schema"] == "nightherd/v1/jobs"
            assert [row["id"] for row in first["data"]] == [ids[4], ids[3]]
            assert [row["id"] for row in rest["data"]] == [ids[2], ids[1], ids[0]]
            assert rest["next_before"] is None

    anyio.run(main)


def test_lists_are_narrowed_by_agent_and_status(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            done, waiting = await world.run(), await world.submit("slow")

            by_agent = (await world.get("/v1/jobs?agent=slow")).data
            by_status = (await world.get("/v1/jobs?status=completed")).data

            assert [row["id"] for row in by_agent] == [waiting]
            assert [row["id"] for row in by_status] == [done]

    anyio.run(main)


def test_lists_are_narrowed_by_a_filter(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            done, waiting = await world.run(), await world.submit("slow")

            async def listed(filter: str) -> list[str]:
                return [row["id"] for row in (await world.get("/v1/jobs?q=" + quote(filter))).data]

            assert await listed("status:completed,pending since:1d") == [waiting, done]
            assert await listed("cost:>0 trigger:manual") == [done]
            assert await listed('"hello, world" agent:hello') == [done]
            assert await listed("until:1d") == []
            refused = await world.get("/v1/jobs?q=" + quote("agent:hello state:x"))
            assert refused.status == 400
            assert "column 13 of the filter: 'state' is no filter" in refused.document["detail"]

    anyio.run(main)


def test_a_job_is_shown_with_its_prompt_and_result(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.run(prompt="night")

            shown = (await world.get(f"/v1/jobs/{job_id[4:]}")).data
            newest = (await world.get("/v1/jobs/@last")).data

            assert shown == newest
            assert (shown["prompt"], shown["summary"]) == ("night", "Hello, night.")
            assert [one["epoch"] for one in shown["executions"]] == [1]

    anyio.run(main)


def test_a_submitted_job_is_on_record_before_the_answer(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            body = {
                "agent": "topical",
                "inputs": {"topic": "sheep", "n": 3, "dry": True},
                "priority": 3,
            }

            answer = await world.post("/v1/jobs", body)

            assert answer.status == 201
            assert answer.headers["location"] == f"/v1/jobs/{answer.data['id']}"
            (job,) = world.site.context.reader.list_jobs(JobQuery())
            texts = world.site.context.reader.find_texts(job.id)
            assert texts is not None
            assert (job.id, job.priority, texts.prompt) == (answer.data["id"], 3, "about sheep")
            assert texts.inputs == {"topic": "sheep", "n": 3, "dry": True}
            assert (job.trigger_type, job.status) == ("manual", "pending")

    anyio.run(main)


def test_one_key_makes_one_job_however_many_ask_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            answers = []

            async def ask() -> None:
                body = {"agent": "hello", "prompt": "once"}
                answers.append(await world.post("/v1/jobs", body, idempotency_key="k"))

            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(ask)
            other = await world.post(
                "/v1/jobs", {"agent": "hello", "prompt": "other"}, idempotency_key="k"
            )

            assert sorted(answer.status for answer in answers) == [200] * 19 + [201]
            assert len({answer.data["id"] for answer in answers}) == 1
            assert len(world.site.context.reader.list_jobs(JobQuery())) == 1
            assert (other.status, other.document["code"]) == (409, "refused")

    anyio.run(main)


def test_a_waiting_job_is_cancelled_at_once_and_done_again_as_another(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.submit("slow")

            cancelled = await world.post(f"/v1/jobs/{job_id}/cancel")
            again = await world.post(f"/v1/jobs/{job_id}/cancel")
            retried = await world.post(f"/v1/jobs/{job_id}/retry", idempotency_key="k")
            repeated = await world.post(f"/v1/jobs/{job_id}/retry", idempotency_key="k")
            early = await world.post(f"/v1/jobs/{retried.data['id']}/retry")

            assert (cancelled.status, cancelled.data["status"]) == (200, "cancelled")
            assert (again.status, again.document["code"]) == (409, "refused")
            assert (retried.status, retried.data["status"]) == (201, "pending")
            assert retried.data["id"] != job_id
            assert repeated.data["id"] == retried.data["id"]
            assert early.status == 409

    anyio.run(main)


def test_a_running_job_is_stopped_by_its_worker(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world, anyio.create_task_group() as tasks:
            job_id = await world.submit("slow")
            tasks.start_soon(world.execute, job_id, "slow")

            async def is_running() -> bool:
                shown = await world.get(f"/v1/jobs/{job_id}")
                return bool(shown.data["status"] == "running")

            await until(is_running)

            asked = await world.post(f"/v1/jobs/{job_id}/cancel")

            assert (asked.status, asked.data["status"]) == (200, "running")
            job = world.site.context.reader.find_job(job_id)
            assert job is not None
            assert job.cancel_requested_at is not None
            tasks.cancel_scope.cancel()

    anyio.run(main)


def test_a_job_that_ended_goes_on_as_another_in_its_session(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.run()

            on = await world.post(f"/v1/jobs/{job_id}/resume", {"prompt": "and the moon"})
            waiting = await world.post(f"/v1/jobs/{on.data['id']}/resume")

            assert on.status == 200
            assert on.data["resumed_from"] == job_id
            assert waiting.status == 409

    anyio.run(main)


def test_a_branch_begins_at_one_place_of_a_session(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            first = await world.run()
            fork = {"agent": "hello", "fork": "@last"}

            made = await world.post("/v1/jobs", {**fork, "at_message": 1})
            begun = await world.get(f"/v1/sessions/{made.data['session_id']}")
            by_event = await world.post("/v1/jobs", {**fork, "at_seq": 1, "at_job": first})
            two = await world.post("/v1/jobs", {**fork, "at_message": 1, "at_seq": 1})
            no_fork = await world.post("/v1/jobs", {"agent": "hello", "at_job": first})
            nowhere = await world.post(f"/v1/jobs/{first}/resume", {"at_checkpoint": 99})

            assert (made.status, made.data["forked_from"]) == (201, first)
            assert begun.data["base_messages"] == 1
            assert by_event.status == 201
            assert [one.document["code"] for one in (two, no_fork)] == ["usage", "usage"]
            assert (nowhere.status, nowhere.document["code"]) == (400, "invalid_value")

    anyio.run(main)


def test_a_session_is_gone_on_in_and_branched_once_for_each_key(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            first = await world.run()
            (session,) = (await world.get("/v1/sessions")).data
            path, key = f"/v1/sessions/{session['id']}/resume", {"idempotency-key": "k"}

            fork = await world.post("/v1/jobs", {"agent": "hello", "fork": session["id"]})
            again = [
                await world.post("/v1/jobs", {"agent": "hello", "resume": "@last"}, **key)
                for _ in range(2)
            ]
            resumed = [await world.post(path, {"prompt": "and the moon"}, **key) for _ in range(2)]
            unclear = await world.post(
                "/v1/jobs", {"agent": "hello", "fork": "@last", "resume": "@last"}
            )

            assert (fork.status, fork.data["forked_from"]) == (201, first)
            assert [one.status for one in again] == [201, 200]
            assert len({one.data["id"] for one in again}) == 1
            assert [one.data["resumed_from"] for one in resumed] == [first, first]
            assert len({one.data["id"] for one in resumed}) == 1
            assert (unclear.status, unclear.document["code"]) == (400, "usage")

    anyio.run(main)


def test_a_session_whose_last_job_is_completed_needs_a_prompt(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            first = await world.run()
            (session,) = (await world.get("/v1/sessions")).data

            refused = await world.post(f"/v1/sessions/{session['id']}/resume")

            assert (refused.status, refused.document["code"]) == (409, "refused")
            assert f"its last job {first} is completed" in refused.document["detail"]
            assert len((await world.get("/v1/jobs")).data) == 1

    anyio.run(main)


def test_sessions_are_listed_and_shown(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            job_id = await world.run()

            (row,) = (await world.get("/v1/sessions")).data
            shown = (await world.get(f"/v1/sessions/{row['id']}")).data
            missing = await world.get("/v1/sessions/sess-zzzzzzzz")

            assert shown["jobs"] == [job_id]
            assert (missing.status, missing.document["code"]) == (404, "session_not_found")

    anyio.run(main)


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", ""])
def test_a_body_that_is_not_said_to_be_json_is_answered_with_the_header_it_needs(
    tmp_path: Path, kind: str
) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            body = b'{"agent": "hello", "prompt": "x"}'
            answer = await world.ask("POST", "/v1/jobs", body, content_type=kind)

            torn = await world.ask("POST", "/v1/jobs", b"{", content_type="application/json")

            assert (answer.status, torn.status) == (415, 422)
            assert "application/json" in answer.document["detail"]
            assert "content-type" in answer.document["hint"]

    anyio.run(main)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/v1/jobs/nothing", None, 404, "job_not_found"),
        ("GET", "/v1/jobs/@last-failed", None, 404, "job_not_found"),
        ("GET", "/v1/jobs?limit=0", None, 422, "malformed"),
        ("GET", "/v1/jobs?status=dancing", None, 422, "malformed"),
        ("GET", "/v1/jobs?before=99999999999999999999999", None, 422, "malformed"),
        ("POST", "/v1/jobs", {"agent": "ghost"}, 404, "agent_not_found"),
        ("POST", "/v1/jobs", {"agent": "slow", "colour": "red"}, 422, "malformed"),
        ("POST", "/v1/jobs", {"agent": "slow", "priority": "3"}, 422, "malformed"),
        ("POST", "/v1/jobs", {"agent": "slow", "prompt": "  "}, 400, "usage"),
        ("POST", "/v1/jobs", {"agent": "topical"}, 400, "invalid_value"),
        ("POST", "/v1/jobs", {"agent": "talker", "prompt": "x"}, 400, "usage"),
        ("POST", "/v1/jobs", b"{", 415, "malformed"),
        ("POST", "/v1/jobs/@last/cancel", None, 404, "job_not_found"),
        ("DELETE", "/v1/jobs", None, 405, "method_not_allowed"),
        ("GET", "/v1/nothing/here", None, 404, "not_found"),
    ],
)
def test_a_mistake_is_answered_with_a_problem(
    tmp_path: Path, method: str, path: str, body: dict[str, str] | None, status: int, code: str
) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            answer = await world.ask(method, path, body)

            assert answer.headers["content-type"] == "application/problem+json"
            found = answer.document
            assert (answer.status, found["status"], found["code"]) == (status, status, code)
            assert found["detail"]

    anyio.run(main)


def test_what_its_sender_has_given_up_is_not_done(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            now = world.site.context.clock.monotonic()
            late = [until_text(boot_id(), now - 1), until_text("another boot", now + 60), "soon"]
            for until in late:
                answer = await world.post("/v1/jobs", {"agent": "hello"}, nightherd_until=until)
                assert (answer.status, answer.document["code"]) == (409, "refused")
            in_time = until_text(boot_id(), now + 600)
            answer = await world.post("/v1/jobs", {"agent": "hello"}, nightherd_until=in_time)

            assert answer.status == 201
            assert len((await world.get("/v1/jobs")).data) == 1

    anyio.run(main)


def test_a_job_may_have_other_terms_than_its_agent(tmp_path: Path) -> None:
    body = {
        "agent": "hello",
        "session": "persistent",
        "model": "other",
        "max_turns": 3,
        "job_timeout": "5m",
        "limits": {"spend": "0.50", "duration": "1h", "turns": "20"},
    }

    async def main() -> None:
        async with served(tmp_path) as world:
            made = await world.post("/v1/jobs", body)
            wrong = [
                await world.post("/v1/jobs", {**body, name: value})
                for name, value in (
                    ("limits", {"spend": "much"}),
                    ("limits", {"anger": "1"}),
                    ("job_timeout", "for ever"),
                    ("session", "none"),
                    ("max_turns", 0),
                )
            ]
            reader = world.site.context.reader
            texts = reader.find_texts(JobId(made.data["id"]))
            session = reader.find_session(made.data["session_id"])

            assert [answer.status for answer in wrong] == [400, 422, 400, 422, 422]
            assert texts is not None
            assert texts.overrides.document() == {
                "model": "other",
                "max_turns": 3,
                "job_timeout": "5m",
                "limits": {"spend": 500_000, "duration": 3_600_000, "turns": 20},
            }
            assert session is not None
            assert session.mode is SessionMode.PERSISTENT

    anyio.run(main)
