"""Empty workflows on DBOS and SQLite: enqueued and waited for, as many as the first argument says.

Runs in an environment of its own that has DBOS; prints jobs a second. DBOS keeps its SQLite in rollback
journal mode with `synchronous = FULL`, its default: every commit is synced, which is its one level.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from typing import Any

from dbos import DBOS  # type: ignore[import-not-found]  # only its own environment has it

IN_FLIGHT = 64
POLLING_S = 0.05
"""Its default of a second would measure waiting."""


def empty(number: int) -> str:
    return "done"


def main() -> None:
    count = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        config: Any = {
            "name": "dispatch",
            "system_database_url": f"sqlite:///{folder}/dispatch.sqlite",
            "application_version": "bench",
            "executor_id": "bench",
            "log_level": "ERROR",
            "run_admin_server": False,
        }
        DBOS(config=config)

        workflow = DBOS.workflow()(empty)
        DBOS.launch()
        queue = DBOS.register_queue(
            "empty", worker_concurrency=IN_FLIGHT, polling_interval_sec=POLLING_S
        )
        queue.enqueue(workflow, 0).get_result()
        begun = time.perf_counter()
        # One after the other: SQLite takes one writer at a time, more of them only wait for each other.
        handles = [queue.enqueue(workflow, number) for number in range(count)]
        for handle in handles:
            assert handle.get_result() == "done"
        elapsed = time.perf_counter() - begun
        print(f"{count / elapsed:.1f}", flush=True)
        # Its threads are not waited for: what was measured is over.
        os._exit(0)


if __name__ == "__main__":
    main()
