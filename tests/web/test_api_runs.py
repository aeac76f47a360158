"""Workflows and runs over the API: started, shown and controlled, with the same errors as everywhere."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from nightherd.host.machine import user_name
from nightherd.model.jobs.job import JobStatus
from nightherd.model.webhooks import sign_standard
from web.run_world import patch, serving_runs, start, work_on
from web.web_world import SECRET, World


def test_workflows_are_listed_and_shown_with_their_switch(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            listed = (await world.get("/v1/workflows")).data
            shown = (await world.get("/v1/workflows/build")).data
            missing = await world.get("/v1/workflows/nothing")

        rows = {row["name"]: row for row in listed}
        assert rows["build"]["inputs"] == ["title", "count"]
        assert rows["build"]["webhooks"] == ["started"]
        assert rows["unattended"]["api"] is False
        assert all(row["is_enabled"] and not row["is_overridden"] for row in listed)
        assert [phase["name"] for phase in shown["definition"]["phases"]] == [
            "plan",
            "ask",
            "publish",
        ]
        assert missing.status == 404
        assert missing.document["hint"] == "GET /v1/workflows"

    anyio.run(main)


def test_a_run_keeps_its_definition(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            run_id = await start(world, "build", title="cows")
            kept = await world.get(f"/v1/runs/{run_id}/definition")
            declared = (await world.get("/v1/workflows/build")).data["definition"]
            missing = await world.get("/v1/runs/nothing/definition")

        assert kept.document["schema"] == "nightherd/v1/workflow_definition"
        assert kept.data["inputs"] == declared["inputs"]
        assert kept.data["phases"] == declared["phases"]
        assert missing.status == 404

    anyio.run(main)


def test_a_run_is_started_shown_answered_and_ends(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            answer = await world.post("/v1/workflows/build/runs", {"inputs": {"title": "cows"}})
            run_id = answer.data["id"]
            await work_on(world)
            waiting = (await world.get(f"/v1/runs/{run_id}")).data
            (wait,) = waiting["waits_for"]
            item = (await world.get(f"/v1/inbox/{wait['item_id']}")).data
            about = (await world.get(f"/v1/inbox?about={run_id}")).data
            body = {"verdict": "approve", "input": {"artifact": "Edited."}}
            answered = await world.post(f"/v1/inbox/{wait['item_id']}/answers", body)
            await work_on(world)
            done = (await world.get("/v1/runs/@last")).data
            output = await world.get(f"/v1/runs/{run_id}/outputs/publish")

        assert answer.status == 201
        assert answer.headers["location"] == f"/v1/runs/{run_id}"
        assert answer.document["schema"] == "nightherd/v1/workflow_run"
        assert answer.data["started_by"] == user_name()
        assert answer.data["is_new"] is True
        assert waiting["status"] == "paused"
        assert waiting["inputs"] == {"title": "cows", "count": 2}
        assert wait["next"] == f'POST /v1/inbox/{wait["item_id"]}/answers with a "verdict"'
        assert item["cost"] == "$0.01"
        assert [one["id"] for one in about] == [wait["item_id"]]
        assert answered.status == 200
        assert done["status"] == "succeeded"
        assert [(node["path"], node["status"]) for node in done["nodes"]] == [
            ("plan", "succeeded"),
            ("ask", "succeeded"),
            ("publish", "succeeded"),
        ]
        assert output.data == {"phase": "publish", "output": "Edited."}

    anyio.run(main)


def test_a_key_starts_one_run_and_is_refused_with_other_inputs(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            path, body = "/v1/workflows/quick/runs", {"inputs": {"word": "cow"}}
            first = await world.post(path, body, idempotency_key="k")
            again = await world.post(path, body, idempotency_key="k")
            other = await world.post(path, {"inputs": {"word": "pig"}}, idempotency_key="k")
            elsewhere = await world.post("/v1/workflows/failing/runs", idempotency_key="k")
            runs = (await world.get("/v1/runs")).data

        assert (first.status, again.status, other.status) == (201, 200, 409)
        assert again.data["id"] == first.data["id"]
        assert again.data["is_new"] is False
        assert other.document["next"] == {"action": "show_run", "run": first.data["id"]}
        assert elsewhere.status == 201
        assert len(runs) == 2

    anyio.run(main)


def test_wrong_inputs_are_422_and_what_cannot_be_started_is_409(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            lacking = await world.post("/v1/workflows/build/runs")
            mistyped = await world.post(
                "/v1/workflows/build/runs", {"inputs": {"title": "x", "count": "many"}}
            )
            held = await start(world, "single")
            dropped = await world.post("/v1/workflows/single/runs")
            by_hand = await world.post("/v1/workflows/unattended/runs")
            unknown = await world.post("/v1/workflows/nothing/runs")
            runs = (await world.get("/v1/runs")).data

        assert (lacking.status, lacking.document["code"]) == (422, "invalid_inputs")
        assert "the input 'title' is required" in lacking.document["detail"]
        assert lacking.document["hint"] == "GET /v1/workflows/build"
        assert mistyped.status == 422
        assert "'count'" in mistyped.document["detail"]
        assert dropped.status == 409
        assert dropped.document["next"] == {"action": "show_run", "run": held}
        assert f"GET /v1/runs/{held}" in dropped.document["hint"]
        assert (by_hand.status, unknown.status) == (409, 404)
        assert [run["id"] for run in runs] == [held]

    anyio.run(main)


def test_a_workflow_is_switched_off_on_and_back_to_its_file(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            off = await patch(world, "/v1/workflows/quick", {"enabled": False})
            refused = await world.post("/v1/workflows/quick/runs")
            on = await patch(world, "/v1/workflows/quick", {"enabled": True})
            started = await world.post("/v1/workflows/quick/runs")
            file = await patch(world, "/v1/workflows/quick", {"enabled": None})
            malformed = await patch(world, "/v1/workflows/quick", {})
            unknown = await patch(world, "/v1/workflows/nothing", {"enabled": False})

        def switch(answer: dict[str, object]) -> tuple[object, object, object]:
            return answer["is_enabled"], answer["is_overridden"], answer["updated_by"]

        assert switch(off.data) == (False, True, user_name())
        assert refused.status == 409
        assert refused.document["hint"] == 'PATCH /v1/workflows/quick with "enabled": true'
        assert switch(on.data) == (True, True, user_name())
        assert started.status == 201
        assert switch(file.data) == (True, False, None)
        assert (malformed.status, unknown.status) == (422, 404)

    anyio.run(main)


def test_runs_are_listed_in_pages_by_workflow_and_status(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            failing = [await start(world, "failing") for _ in range(3)]
            paused = await start(world, "single")
            await work_on(world)
            first = await world.get("/v1/runs?workflow=failing&limit=2")
            before = first.document["next_before"]
            second = await world.get(f"/v1/runs?workflow=failing&limit=2&before={before}")
            waiting = await world.get("/v1/runs?status=paused")
            wrong = await world.get("/v1/runs?status=sleeping")

        assert [run["id"] for run in first.data] == failing[:0:-1]
        assert [run["id"] for run in second.data] == failing[:1]
        assert second.document["next_before"] is None
        assert [run["id"] for run in waiting.data] == [paused]
        assert wrong.status == 422

    anyio.run(main)


def test_a_failed_run_is_retried_and_forked_once_for_a_key(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            run_id = await start(world, "failing")
            early = await world.post(f"/v1/runs/{run_id}/retry")
            await work_on(world)
            retried = await world.post(f"/v1/runs/{run_id}/retry", idempotency_key="r")
            again = await world.post(f"/v1/runs/{run_id}/retry", idempotency_key="r")
            fork = await world.post(f"/v1/runs/{run_id}/fork", {"at": "good"}, idempotency_key="r")
            wrong = await world.post(f"/v1/runs/{run_id}/fork", {"at": "nowhere"})
            kept = (await world.get(f"/v1/runs/{retried.data['id']}")).data["nodes"]

        assert early.status == 409
        assert (retried.status, again.status, fork.status, wrong.status) == (201, 200, 201, 400)
        assert retried.data["retried_from"] == run_id
        assert again.data["id"] == retried.data["id"]
        assert fork.data["forked_from"] == run_id
        assert [node["kept_from"] for node in kept] == [run_id, None]

    anyio.run(main)


def test_a_fork_takes_other_inputs(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            run_id = await start(world, "quick")
            await work_on(world)
            body = {"at": "first", "inputs": {"word": "pig"}}
            fork = await world.post(f"/v1/runs/{run_id}/fork", body)
            wrong = await world.post(
                f"/v1/runs/{run_id}/fork", {"at": "first", "inputs": {"nope": 1}}
            )
            await work_on(world)
            output = await world.get(f"/v1/runs/{fork.data['id']}/outputs/first")

        assert output.data["output"] == "Wrote pig."
        assert wrong.status == 422

    anyio.run(main)


def test_a_run_is_cancelled_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            run_id = await start(world, "single")
            cancelled = await world.post(f"/v1/runs/{run_id}/cancel")
            again = await world.post(f"/v1/runs/{run_id}/cancel")

        assert cancelled.data["status"] == "cancelled"
        assert cancelled.data["error"] == f"cancelled by {user_name()}"
        assert again.status == 409

    anyio.run(main)


def test_an_event_continues_a_run_and_is_sent_once_for_a_key(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            run_id = await start(world, "waiting")
            shown = (await world.get(f"/v1/runs/{run_id}")).data
            body = {"event": "deployed", "payload": {"version": "2.1"}}
            for _ in range(2):
                sent = await world.post(f"/v1/runs/{run_id}/signal", body, idempotency_key="e")
                assert sent.status == 200
            await work_on(world)
            output = await world.get(f"/v1/runs/{run_id}/outputs/after")
            events = world.site.context.reader.events_of_run(run_id)

        (wait,) = shown["waits_for"]
        assert wait["next"] == f'POST /v1/runs/{run_id}/signal with "event": "deployed"'
        assert output.data["output"] == "2.1"
        assert [event.name for event in events] == ["deployed"]

    anyio.run(main)


def test_scratch_is_merged_key_by_key_and_bounded(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            path = f"/v1/runs/{await start(world, 'single')}/scratch"
            await patch(world, path, {"a": 1, "b": [2]})
            merged = await patch(world, path, {"a": None, "c": {"d": 3}})
            large = await patch(world, path, {"e": "x" * 70_000})
            wrong = await patch(world, path, [1])
            after = (await world.get("/v1/runs/@last")).data["scratch"]

        assert merged.data == {"b": [2], "c": {"d": 3}}
        assert (large.status, wrong.status) == (409, 422)
        assert after == merged.data

    anyio.run(main)


def test_a_suspended_job_is_resumed_with_its_run(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            run_id = await start(world, "capped")
            await work_on(world)
            (job,) = world.site.context.reader.jobs_of_run(run_id)
            resumed = await world.post(f"/v1/runs/{run_id}/resume")
            single = await start(world, "single")
            nothing = await world.post(f"/v1/runs/{single}/resume")

        assert job.status is JobStatus.SUSPENDED
        assert resumed.data["status"] == "running"
        assert resumed.data["resumed_jobs"] == [job.id]
        assert nothing.status == 409
        assert nothing.document["next"]["action"] == "answer_inbox_item"

    anyio.run(main)


def test_limits_of_a_run_are_raised(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            run_id = await start(world, "single")
            raised = await world.post(f"/v1/runs/{run_id}/raise", {"limits": {"spend": "5"}})
            shown = (await world.get(f"/v1/runs/{run_id}")).data["limits"]
            wrong = await world.post(f"/v1/runs/{run_id}/raise", {"limits": {"spend": "much"}})
            empty = await world.post(f"/v1/runs/{run_id}/raise", {"limits": {}})

        assert raised.status == 200
        assert shown == [{"name": "spend", "maximum": 5_000_000, "used": 0}]
        assert (wrong.status, empty.status) == (400, 422)

    anyio.run(main)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/runs/run-2026-01-01-aaaaaa", 404),
        ("/v1/runs/nothing", 404),
        ("/v1/runs/nothing/definition", 404),
        ("/v1/runs/@last/outputs/nowhere", 404),
        ("/v1/runs/@last/outputs/ask", 409),
        ("/v1/runs/@last/events?after=soon", 400),
    ],
)
def test_what_is_not_there_is_a_problem(tmp_path: Path, path: str, status: int) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            await start(world, "single")
            answer = await world.get(path)

        assert answer.status == status
        assert answer.headers["content-type"] == "application/problem+json"

    anyio.run(main)


async def _deliver(world: World, delivery: str, title: str) -> dict[str, object]:
    body = json.dumps({"title": title}).encode()
    at = int(world.site.context.clock.now().timestamp())
    answer = await world.post(
        "/v1/hooks/started",
        body,
        webhook_id=delivery,
        webhook_timestamp=str(at),
        webhook_signature=sign_standard(SECRET, delivery, at, body),
    )
    assert answer.status == 202, answer.body
    found = answer.data
    assert isinstance(found, dict)
    return found


def test_a_webhook_names_the_runs_it_started_also_when_it_is_sent_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving_runs(tmp_path) as world:
            first = await _deliver(world, "d1", "cows")
            again = await _deliver(world, "d1", "cows")
            await patch(world, "/v1/workflows/build", {"enabled": False})
            partly = await _deliver(world, "d2", "pigs")
            runs = {run["id"]: run["workflow"] for run in (await world.get("/v1/runs")).data}
            kept = (await world.get("/v1/hooks/started/deliveries")).data

        assert first["job_id"] is None
        assert sorted(runs[one] for one in first["run_ids"]) == ["build", "unattended"]  # type: ignore[attr-defined]
        assert again == {**first, "is_new": False, "reason": "this delivery was already accepted"}
        assert [runs[one] for one in partly["run_ids"]] == ["unattended"]  # type: ignore[attr-defined]
        assert "switched off" in str(partly["reason"])
        assert [row["run_ids"] for row in kept] == [partly["run_ids"], first["run_ids"]]

    anyio.run(main)
