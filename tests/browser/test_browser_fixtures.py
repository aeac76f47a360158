"""What tests in a browser rest on: each complaint of a browser is noticed, and fleets are what they say."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.async_api import expect

from browser.fleet_world import FleetWorld
from browser.hostile_site import HostileSite
from browser.large_history import write_jobs, write_long_job, write_sessions
from browser.looks import PHONE_DARK
from browser.probe_site import ProbeSite
from browser.visitor import Visitors
from nightherd.model.access.role import Role
from warm_command import run

WRONG = {
    r"^console: something is wrong": "console.error('something is wrong')",
    r"^error: .*missing": "missing()",
    r"^error: .*late": "Promise.reject(new Error('late'))",
    r"^policy: img-src": "document.body.append(Object.assign(new Image(), { src: '{other}/x.png' }))",
    r"^request: GET \S+/assets/none.png 404": "document.body.append(Object.assign(new Image(), { src: './assets/none.png' }))",
    r"^console: Failed to load resource: .* 401": "fetch('/v1/me')",
    r"^request: GET \S+ net::ERR_FAILED": "fetch('./assets/cut.js').catch(() => null)",
    r"^elsewhere: GET": "location.href = '{other}/'",
}
"""By the complaint about it, what a page does wrong."""


@pytest.mark.parametrize("complaint", WRONG)
async def test_what_is_wrong_with_a_page_fails_its_test(
    probe: ProbeSite, visit: Visitors, hostile_site: HostileSite, complaint: str
) -> None:
    visitor = await visit.arrive(probe)
    await visitor.context.route("**/cut.js", lambda route: route.abort())
    mistake = WRONG[complaint].replace("{other}", hostile_site.origin)
    probe.put(script=f"addEventListener('load', () => {{ {mistake} }});")

    await visitor.open()

    assert await visitor.complaints.until(complaint) != []
    with pytest.raises(AssertionError, match="the browser complains"):
        visitor.complaints.check()
    visitor.complaints.allow(".")


async def test_a_complaint_that_is_expected_has_to_come(probe: ProbeSite, visit: Visitors) -> None:
    visitor = await visit.arrive(probe)
    await visitor.open()
    visitor.complaints.check()

    visitor.complaints.expect("something is wrong")

    with pytest.raises(AssertionError, match="did not complain about"):
        visitor.complaints.check()
    visitor.complaints.heard.append("console: something is wrong")


async def test_a_fleet_has_jobs_in_every_state(fleet: FleetWorld) -> None:
    ended = await fleet.get(f"/v1/jobs/{await fleet.run()}")
    failed = await fleet.get(f"/v1/jobs/{await fleet.run('broken')}")
    kinds = [(await fleet.waiting_job(name))["kind"] for name in ("pusher", "asker", "capped")]
    rescued = await fleet.get(f"/v1/jobs/{await fleet.rescued_job()}")

    assert (ended["status"], ended["cost_usd"], failed["status"]) == ("completed", 0.0011, "failed")
    assert kinds == ["approval", "question", "limit"]
    assert (rescued["status"], rescued["restart_count"]) == ("completed", 1)
    assert [one["status"] for one in rescued["executions"]] == ["lost", "finished"]


async def test_a_fleet_with_much_history_is_sound(new_fleet: Callable[..., FleetWorld]) -> None:
    fleet = new_fleet()
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    long_job = await write_long_job(fleet.state, at, 3_600)
    jobs = await write_jobs(fleet.state, at, 60)
    sessions = await write_sessions(fleet.state, at, 20, first=1_000)
    await fleet.start()

    rows = await fleet.get("/v1/jobs?limit=100")
    shown: Any = await fleet.get(f"/v1/jobs/{long_job}/events?limit=10")
    forked = await fleet.get(f"/v1/sessions/{sessions[1]}")
    await fleet.stop()
    doctor = run(["doctor", "--verify"], fleet.folder, os.environ)

    assert len(rows) == 1 + len(jobs) + len(sessions)
    assert [row["status"] for row in rows].count("failed") == 2
    assert len(shown) == 10
    assert forked["parent_session_id"] == sessions[0]
    assert doctor.returncode == 0, doctor.stdout
    assert "✗" not in doctor.stdout


async def test_people_visit_in_their_roles_and_on_what_they_have(
    fleet: FleetWorld, visit: Visitors
) -> None:
    alice = await visit(fleet, "/jobs", look=PHONE_DARK)
    bob = await visit(fleet, "/jobs", role=Role.VIEWER, name="bob")
    nobody = await visit(fleet, role=None)
    nobody.complaints.allow("status of 401")

    await expect(alice.page.get_by_role("heading", name="Jobs").first).to_be_visible()
    await expect(bob.page.get_by_role("heading", name="Jobs").first).to_be_visible()
    await expect(nobody.page.get_by_role("button", name="Log in")).to_be_visible()
    assert await alice.page.evaluate("() => [innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]") == [390, True]  # fmt: skip
    assert await bob.page.evaluate("() => document.cookie") == ""
