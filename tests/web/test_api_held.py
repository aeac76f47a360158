"""A held session over HTTP: jobs wait unless the caller asks to be refused; channels hold their own sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from web.test_webhooks import standard
from web.web_world import World, served, write_fleet

FLEET = """\
webhooks:
  secret_env: HOOK_SECRET
  endpoints:
    notes: {agent: planner, signature: standard, prompt: "${payload.text}"}
    rooms: {agent: talker, signature: standard, prompt: "${payload.text}", channel: "${payload.room}"}
agents:
  - name: planner
    runtime: scripted
    default_prompt: plan
    session: {mode: persistent}
    limits: {turns: 1}
    script: [{repeat: 4, steps: [{say: "${prompt}"}, {usage: {output_tokens: 1}}]}]
  - name: talker
    runtime: scripted
    default_prompt: talk
    session: {mode: per_channel}
    limits: {turns: 1}
    script: [{repeat: 4, steps: [{say: "${prompt}"}, {usage: {output_tokens: 1}}]}]
"""


async def hold(world: World, agent: str = "planner", **more: Any) -> str:
    """A job that waits for a person after its first turn."""
    made = await world.post("/v1/jobs", {"agent": agent, "prompt": "first", **more})
    assert made.status == 201, made.body
    job_id = made.data["id"]
    await world.execute(job_id, agent)
    shown = (await world.get(f"/v1/jobs/{job_id}")).data
    assert (shown["status"], shown["suspend_reason"]) == ("suspended", "limit")
    return str(job_id)


def test_a_job_is_refused_if_the_caller_says_so_and_else_waits(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            held = await hold(world)
            session = (await world.get(f"/v1/jobs/{held}")).data["session_id"]
            into = {"agent": "planner", "prompt": "more", "resume": session}

            for body in ({"agent": "planner", "prompt": "more"}, into):
                refused = await world.post("/v1/jobs", body, if_held="refuse")
                assert refused.status == 409
                assert (
                    f"is held by {held}, which is suspended (limit)" in refused.document["detail"]
                )
                assert f"or: POST /v1/jobs/{held}/cancel" in refused.document["hint"]
                assert f'POST /v1/jobs/{held}/resume with "limits"' in refused.document["hint"]
                assert refused.document["next"]["action"] == "raise_job_limit"
                assert refused.document["alternatives"][0] == {"action": "cancel_job", "job": held}
                waits = await world.post("/v1/jobs", body)
                assert (waits.status, waits.data["session_id"]) == (201, session)
                shown = (await world.get(f"/v1/jobs/{waits.data['id']}")).data
                assert shown["waits_behind"]["job_id"] == held
            wrong = await world.post("/v1/jobs", into, if_held="perhaps")
            assert wrong.status in (400, 422)

    anyio.run(main)


def test_a_branch_runs_beside_the_held_session(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            held = await hold(world)
            session = (await world.get(f"/v1/jobs/{held}")).data["session_id"]
            body = {"agent": "planner", "prompt": "aside", "branch": True}

            for more in ({}, {"resume": session}):
                made = await world.post("/v1/jobs", {**body, **more}, if_held="refuse")
                assert made.status == 201, made.body
                job = (await world.get(f"/v1/jobs/{made.data['id']}")).data
                branch = (await world.get(f"/v1/sessions/{job['session_id']}")).data
                assert (job["trigger_type"], job["forked_from"]) == ("fork", held)
                assert branch["parent_session_id"] == session
                assert job["waits_behind"] is None
                await world.execute(made.data["id"], "planner")
            both = await world.post("/v1/jobs", {**body, "fork": session})
            assert both.status == 400

    anyio.run(main)


def test_a_retry_is_refused_if_the_caller_says_so_and_else_waits(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            first = await hold(world)
            await world.post(f"/v1/jobs/{first}/cancel")
            held = await hold(world)

            refused = await world.post(f"/v1/jobs/{first}/retry", if_held="refuse")
            waits = await world.post(f"/v1/jobs/{first}/retry")

            assert (refused.status, held in refused.document["detail"]) == (409, True)
            assert waits.status == 201
            shown = (await world.get(f"/v1/jobs/{waits.data['id']}")).data
            assert shown["waits_behind"]["job_id"] == held

    anyio.run(main)


def test_a_webhook_whose_session_is_held_is_accepted_and_waits(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            held = await hold(world)

            answer = await standard(world, "d-1", {"text": "hello"}, name="notes")

            assert answer.status == 202, answer.body
            shown = (await world.get(f"/v1/jobs/{answer.data['job_id']}")).data
            assert (shown["status"], shown["waits_behind"]["job_id"]) == ("pending", held)

    anyio.run(main)


@pytest.mark.parametrize("way", ["api", "webhook"])
def test_a_job_holds_the_session_of_its_own_channel_only(tmp_path: Path, way: str) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, FLEET)) as world:
            held = await hold(world, "talker", channel="red")

            async def say(channel: str) -> dict[str, Any]:
                if way == "webhook":
                    payload = {"text": "hello", "room": channel}
                    answer = await standard(world, f"d-{channel}", payload, name="rooms")
                    job_id = answer.data["job_id"]
                else:
                    body = {"agent": "talker", "prompt": "hello", "channel": channel}
                    job_id = (await world.post("/v1/jobs", body)).data["id"]
                found = (await world.get(f"/v1/jobs/{job_id}")).data
                assert isinstance(found, dict)
                return found

            same, other = await say("red"), await say("blue")

            assert same["waits_behind"]["job_id"] == held
            assert other["waits_behind"] is None
            await world.execute(other["id"], "talker")
            body = {"agent": "talker", "prompt": "hello", "channel": "red"}
            refused = await world.post("/v1/jobs", body, if_held="refuse")
            branched = await world.post("/v1/jobs", {**body, "branch": True})
            assert (refused.status, branched.status) == (409, 201)
            # The channel's own session stays its current one: what comes next waits for it.
            assert (await world.post("/v1/jobs", body)).data["session_id"] == same["session_id"]

    anyio.run(main)
