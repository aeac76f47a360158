"""The strip of schedules over HTTP: what ran, what was skipped or missed, and what is planned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from nightherd.engine.operations.schedules import DueSlot, fire_slots
from nightherd.model.change import FireSlot
from nightherd.model.ids import JobId
from nightherd.model.schedules.due import MISSED
from nightherd.model.schedules.schedule import Slot, SlotKind, SlotOutcome, slot_id
from nightherd.views.schedules.strip import MOST_SLOTS
from web.web_world import FLEET, World, served, write_fleet

OFTEN = FLEET.replace("interval: 30d, enabled: false", "interval: 10s")
HOUR = timedelta(hours=1)
NIGHTLY = "hello/nightly"


async def fire(
    world: World, due: datetime, reason: str | None = None, name: str = "nightly"
) -> str | None:
    """Record a slot of a schedule: skipped for `reason`, or with a job, whose id is returned."""
    agent = world.site.fleet().agents["hello"]
    key = f"hello/{name}"
    slot = Slot(
        id=slot_id(key, due),
        schedule_id=key,
        due_at=due,
        outcome=SlotOutcome.SKIPPED,
        decided_at=due,
        reason=reason,
    )
    change = FireSlot(slot=slot, agent="hello", schedule=name, next_run_at=None)
    schedule = agent.schedules[name]
    makes_job = reason is None
    one = DueSlot(agent=agent, schedule=schedule, change=change, makes_job=makes_job)
    await fire_slots([one], world.site.context)
    (newest,) = world.site.context.reader.slots_between(key, due, due + HOUR, 1)
    return newest.job_id


def test_past_slots_have_what_became_of_them_in_order(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            now = world.site.now()
            due = [now - timedelta(days=day) for day in (9, 4, 3, 2)]
            old = await fire(world, due[0])
            assert old is not None
            await world.execute(JobId(old))
            await fire(world, due[1], MISSED)
            ran = await fire(world, due[2])
            assert ran is not None
            await world.execute(JobId(ran))
            await fire(world, due[3], "1 of its jobs has not ended")

            data = (await world.get("/v1/slots")).data

            strips = {strip["id"]: strip for strip in data["schedules"]}
            assert list(strips) == [NIGHTLY, "hello/fired", "hello/rarely"]
            past = strips[NIGHTLY]["past"]
            kinds = [(one["kind"], one["job_status"], one["job_id"]) for one in past]
            skipped = ("skipped", None, None)
            assert kinds == [("missed", None, None), ("ran", "completed", ran), skipped]
            assert past[0]["reason"] == MISSED
            assert past[1]["ended_at"] is not None
            assert [one["due_at"] for one in past] == sorted(one["due_at"] for one in past)
            assert (strips[NIGHTLY]["is_past_cut"], data["until"][:10]) == (
                False,
                f"{now + timedelta(days=7):%Y-%m-%d}",
            )

            longer = (await world.get("/v1/slots?since=20d&until=1h")).data["schedules"][0]
            assert longer["past"][0]["job_id"] == old

    anyio.run(main)


def test_planned_slots_are_the_instants_of_the_rule(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            now = world.site.now()

            strips = (await world.get("/v1/slots?until=3d")).data["schedules"]

            nightly, fired, rarely = strips
            instants = [datetime.fromisoformat(one["due_at"]) for one in nightly["planned"]]
            assert len(instants) == 3
            assert all((one.hour, one.minute) == (3, 0) for one in instants)
            assert now < instants[0] < instants[-1] < now + timedelta(days=3)
            assert nightly["next_run_at"] == nightly["planned"][0]["runs_at"]
            assert (fired["planned"], fired["rule"]) == ([], None)
            assert (rarely["planned"], rarely["enabled"]) == ([], False)

            await world.post("/v1/schedules/hello/nightly/set", {"rule": "1d"})
            (changed,) = (await world.get(f"/v1/slots?until=3d&schedule={NIGHTLY}")).data[
                "schedules"
            ]
            midnights = {datetime.fromisoformat(one["due_at"]).hour for one in changed["planned"]}
            assert midnights == {0}

    anyio.run(main)


def test_slot_that_waits_for_its_jitter_is_still_planned(tmp_path: Path) -> None:
    spread = 'cron: "* * * * *", jitter: 59s, prompt'
    text = FLEET.replace('cron: "0 3 * * *", prompt', spread)

    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, text)) as world:
            rows = (await world.get(f"/v1/slots?schedule={NIGHTLY}&until=1h")).data["schedules"]

            planned = rows[0]["planned"]
            assert all(one["due_at"] <= one["runs_at"] for one in planned)
            assert any(one["due_at"] < one["runs_at"] for one in planned)

    anyio.run(main)


def test_a_strip_is_bounded_and_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, fleet=write_fleet(tmp_path, OFTEN)) as world:
            now = world.site.now()
            for number in range(MOST_SLOTS + 3):
                await fire(world, now - HOUR - number * timedelta(seconds=10), MISSED, "rarely")

            answer = await world.get("/v1/slots?schedule=hello/rarely")

            (strip,) = answer.data["schedules"]
            assert (len(strip["past"]), strip["is_past_cut"]) == (MOST_SLOTS, True)
            assert (len(strip["planned"]), strip["is_planned_cut"]) == (MOST_SLOTS, True)
            newest = datetime.fromisoformat(strip["past"][-1]["due_at"])
            assert newest == (now - HOUR).astimezone(UTC)

    anyio.run(main)


def test_schedules_come_in_pages(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            first = (await world.get("/v1/slots?limit=2")).document
            rest = (await world.get(f"/v1/slots?limit=2&after={first['next_after']}")).document
            lost = await world.get("/v1/slots?after=hello/never")

            ids = [one["id"] for page in (first, rest) for one in page["data"]["schedules"]]
            assert ids == [NIGHTLY, "hello/fired", "hello/rarely"]
            assert (first["next_after"], rest["next_after"]) == ("hello/fired", None)
            assert lost.status == 404

    anyio.run(main)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("since=1d&until=62d", 400),
        ("since=2026-03-02&until=2026-03-01", 400),
        ("since=soon", 400),
        ("until=100000000d", 400),
        ("since=100000000d", 400),
        ("schedule=hello/never", 404),
        ("schedule=hello", 400),
        ("limit=0", 422),
        ("limit=101", 422),
    ],
)
def test_what_cannot_be_shown_is_refused(query: str, status: int, tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as world:
            assert (await world.get(f"/v1/slots?{query}")).status == status

    anyio.run(main)


def test_a_reason_says_whether_a_slot_was_missed() -> None:
    slot = Slot(
        id="a/b@c",
        schedule_id="a/b",
        due_at=datetime(2026, 3, 1, tzinfo=UTC),
        outcome=SlotOutcome.SKIPPED,
        decided_at=datetime(2026, 3, 1, tzinfo=UTC),
        reason=MISSED,
    )

    assert slot.kind is SlotKind.MISSED
