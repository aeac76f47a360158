"""The row of an execution that begins."""

from __future__ import annotations

from nightherd.model.ids import generate_execution_id
from nightherd.model.jobs.changes import StartExecution
from nightherd.model.jobs.job import EXECUTION_WORD, Execution, ExecutionStatus, Job, JobTexts
from nightherd.model.jobs.overrides import issue_of_inputs, repo_of_inputs
from nightherd.model.workflows.rows import WorkflowRun, skill_of


def begun_execution(
    change: StartExecution, job: Job, texts: JobTexts | None, run: WorkflowRun | None
) -> Execution:
    """Return the execution of the job's epoch; one of a phase says which workflow and issue it is for."""
    return Execution(
        id=generate_execution_id(job.id, job.epoch),
        job_id=job.id,
        epoch=job.epoch,
        worker=change.worker,
        status=ExecutionStatus.STARTED,
        trigger_type=EXECUTION_WORD[job.trigger_type],
        trigger_id=job.trigger_id or job.id,
        skill=job.agent if run is None else skill_of(run, job),
        started_at=change.at,
        repo=_repo_of(texts, run) or change.repo,
        issue_number=_issue_of(texts, run),
        session_id=job.session_id,
        runtime_session_id=job.runtime_session_id,
        workflow_run_id=job.workflow_run_id,
    )


def _repo_of(texts: JobTexts | None, run: WorkflowRun | None) -> str | None:
    """The repository of what the job is about, where that is known."""
    if run is not None:
        return run.repo
    return repo_of_inputs(texts.inputs) if texts is not None else None


def _issue_of(texts: JobTexts | None, run: WorkflowRun | None) -> int | None:
    """The number of the issue that the job is about."""
    if run is not None:
        return run.issue_number
    return issue_of_inputs(texts.inputs) if texts is not None else None
