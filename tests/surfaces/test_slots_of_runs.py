"""What became of a workflow's schedule: the run that a due time started is named wherever slots are shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from nightherd.model.change import Applied, FireSlot
from nightherd.model.schedules.schedule import Slot, SlotOutcome, slot_id
from nightherd.testing.run_values import job, run_id, start_run, workflow
from nightherd.wiring.stores import open_repair
from surfaces.drivers import Cli

SCHEDULE = "workflow:graze/nightly"
DUE = datetime(2026, 3, 1, 1, 0, tzinfo=UTC)
FLEET = """\
agents:
  - {name: grazer, runtime: scripted, default_prompt: hi, script: [{say: Grazed.}]}
workflows:
  graze:
    on: {schedules: {nightly: {cron: "0 1 * * *"}}}
    phases:
      - {name: dig, agent: grazer, prompt: go}
"""


@pytest.fixture
def fired(fleet: Path, cli: Cli) -> Cli:
    """A fleet in which one due time of a workflow's schedule started a run."""
    (fleet / "nightherd.yaml").write_text(FLEET)
    cli("run", "grazer", "-q")
    slot = Slot(
        id=slot_id(SCHEDULE, DUE),
        schedule_id=SCHEDULE,
        due_at=DUE,
        outcome=SlotOutcome.SKIPPED,
        decided_at=DUE,
    )
    change = FireSlot(
        slot=slot,
        agent="workflow:graze",
        schedule="nightly",
        next_run_at=DUE + timedelta(days=1),
        run=start_run(1, workflow(job("dig"))),
    )

    async def fire() -> None:
        async with open_repair(fleet / ".nightherd") as record:
            (answer,) = await record.state.apply([change])
            assert isinstance(answer, Applied), answer

    anyio.run(fire)
    return cli


def test_history_names_the_run(fired: Cli) -> None:
    (slot,) = fired("schedule", "history", SCHEDULE, "--json").data

    assert (slot["outcome"], slot["run_id"], slot["job_id"]) == ("run", run_id(1), None)
    assert run_id(1) in fired("schedule", "history", SCHEDULE).out


def test_why_names_the_run(fired: Cli) -> None:
    why = fired("schedule", "why", SCHEDULE, "--json").data

    assert why["last"].endswith(f"became {run_id(1)}")
    assert why["last_slot"]["run_id"] == run_id(1)
