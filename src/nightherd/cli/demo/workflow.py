"""The demo's workflow: review, fix, approval, push. It is killed while it waits, and pushes once."""

from __future__ import annotations

from contextlib import closing

from nightherd.cli.demo.context import DemoContext
from nightherd.cli.demo.stage import published
from nightherd.cli.jobs.command import Finished
from nightherd.errors import NightherdError
from nightherd.model.workflows.run import RunId, RunStatus
from nightherd.wiring.stores import open_reader

WORKFLOW = "ship"


def approve_and_push(demo: DemoContext) -> list[Finished]:
    """Run the workflow: kill the worker while it waits for approval, approve, and see one push arrive.

    Return the jobs of its phases, first to last.
    """
    run_id = _start(demo)
    demo.head(demo.workers.kill_title())
    demo.workers.kill_when(lambda: _is_waiting(demo, run_id))
    demo.show("the worker is killed while the run waits; nothing has arrived at the remote")
    arrived = published(demo.place, demo.git, demo.environ)
    if arrived:
        raise NightherdError(f"something was pushed without approval: {arrived}")
    demo.show("\n".join(demo.command("inbox")))
    if not demo.workers.wait_for_person(lambda: not _is_waiting(demo, run_id), demo.show):
        demo.show("\n".join(demo.command("inbox", "approve", "@last")))
    demo.go_on()
    demo.show("\n".join(demo.command("runs", "show", run_id, "--all")))
    arrived = published(demo.place, demo.git, demo.environ)
    demo.head("git -C origin.git log: exactly one push arrived" if demo.git else "It ran once")
    demo.show("\n".join(arrived))
    if len(arrived) != 1 or _status(demo, run_id) is not RunStatus.SUCCEEDED:
        raise NightherdError(f"not exactly one push arrived: {arrived}")
    return _jobs(demo, run_id)


def _start(demo: DemoContext) -> RunId:
    """Show the workflow and record a run of it for a worker; return the run's id."""
    demo.show("\n".join(demo.command("workflow", "graph", WORKFLOW)))
    demo.show("\n".join(demo.command("workflow", "run", WORKFLOW, "--detach")))
    with closing(open_reader(demo.state_dir)) as reader:
        (run_id,) = reader.run_ids("run-", 1)
    return RunId(run_id)


def _status(demo: DemoContext, run_id: RunId) -> RunStatus | None:
    with closing(open_reader(demo.state_dir)) as reader:
        run = reader.find_run(run_id)
    return None if run is None else run.status


def _is_waiting(demo: DemoContext, run_id: RunId) -> bool:
    return _status(demo, run_id) is RunStatus.PAUSED


def _jobs(demo: DemoContext, run_id: RunId) -> list[Finished]:
    with closing(open_reader(demo.state_dir)) as reader:
        jobs = [job.id for job in reader.jobs_of_run(run_id)]
    return [demo.find(job_id) for job_id in jobs]
