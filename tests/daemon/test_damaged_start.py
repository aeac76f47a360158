"""A daemon that starts on a database with damaged rows: it comes up, and fires its schedules."""

from __future__ import annotations

import signal
from collections.abc import Callable

import apsw
import pytest

from daemon.pasture import Pasture, wait_for
from nightherd.model.jobs.job import JobStatus

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FLEET = """\
agents:
  - name: quick
    runtime: scripted
    default_prompt: go
    schedules:
      often: {interval: 1s}
    script:
      - say: done
"""


def test_daemon_starts_and_works_on_a_database_with_damaged_rows(
    make_pasture: Callable[..., Pasture],
) -> None:
    pasture = make_pasture(FLEET)
    first = pasture.daemon()
    wait_for(lambda: len(pasture.jobs(JobStatus.COMPLETED)) > 1, "two jobs")
    first.send(signal.SIGTERM)
    first.wait()
    before = len(pasture.jobs(JobStatus.COMPLETED))
    connection = apsw.Connection(str(pasture.state / "nightherd.db"))
    for table, column in (("jobs", "summary"), ("job_texts", "prompt"), ("schedules", "rule")):
        connection.execute(f"UPDATE {table} SET {column} = CAST(x'66ff66' AS TEXT)")
    connection.close()

    second = pasture.daemon()

    wait_for(lambda: len(pasture.jobs(JobStatus.COMPLETED)) > before, "a job after that")
    second.send(signal.SIGTERM)
    assert second.wait().said[-1] == "done"
