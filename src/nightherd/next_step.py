"""What can be done about an error, as a value that each surface spells its own way."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple


class Action(StrEnum):
    """What can be done about an error. `cli/next_steps.py` and `web/problem.py` say how."""

    ACCEPT_CONFIG = "accept_config"
    ACCEPT_ITEM = "accept_item"
    ACKNOWLEDGE_DAMAGE = "acknowledge_damage"
    APPLY_JOB = "apply_job"
    APPLY_RETENTION = "apply_retention"
    APPROVE_ITEM = "approve_item"
    BUILD_IMAGE = "build_image"
    CANCEL_JOB = "cancel_job"
    CHECK_CONFIG = "check_config"
    CHECK_STATE = "check_state"
    CLEAN_WORKSPACE = "clean_workspace"
    CREATE_FLEET = "create_fleet"
    DISMISS_ITEM = "dismiss_item"
    EXPORT_SESSION = "export_session"
    FOLLOW_JOB = "follow_job"
    IMPORT_CLAUDE = "import_claude"
    IMPORT_HERDCTL = "import_herdctl"
    IMPORT_LASTLIGHT = "import_lastlight"
    ANSWER_INBOX_ITEM = "answer_inbox_item"
    ANSWER_QUESTION = "answer_question"
    LIST_AGENTS = "list_agents"
    LIST_CHECKPOINTS = "list_checkpoints"
    LIST_INBOX = "list_inbox"
    LIST_JOBS = "list_jobs"
    LIST_SCHEDULES = "list_schedules"
    LIST_SESSIONS = "list_sessions"
    LIST_RUNS = "list_runs"
    LIST_WORKFLOWS = "list_workflows"
    LIST_WORKSPACES = "list_workspaces"
    MANAGE_DAEMON = "manage_daemon"
    MERGE_JOB = "merge_job"
    PLAN_RETENTION = "plan_retention"
    RAISE_JOB_LIMIT = "raise_job_limit"
    RAISE_SHARED_LIMIT = "raise_shared_limit"
    REBUILD_STATE = "rebuild_state"
    REPAIR_STATE = "repair_state"
    RAISE_ITEM = "raise_item"
    REJECT_ITEM = "reject_item"
    REPLY_ITEM = "reply_item"
    RESTART_DAEMON = "restart_daemon"
    RESUME_JOB = "resume_job"
    RESUME_JOB_WITH_PROMPT = "resume_job_with_prompt"
    RESUME_SESSION_AS = "resume_session_as"
    RESUME_SESSION_WITH_PROMPT = "resume_session_with_prompt"
    RETRY_JOB = "retry_job"
    RETRY_ITEM = "retry_item"
    RUN = "run"
    RUN_IN_BRANCH = "run_in_branch"
    RUN_IN_CHANNEL = "run_in_channel"
    RUN_IN_SESSION = "run_in_session"
    RUN_WITH_PROMPT = "run_with_prompt"
    SALVAGE_STATE = "salvage_state"
    SHOW_CONFIG = "show_config"
    SHOW_DIFF = "show_diff"
    SHOW_EVENTS = "show_events"
    SHOW_INBOX_ITEM = "show_inbox_item"
    SHOW_JOB = "show_job"
    SHOW_LIMITS = "show_limits"
    SHOW_STATUS = "show_status"
    SHOW_RUN = "show_run"
    SHOW_WORKFLOW = "show_workflow"
    SHOW_WORKSPACE = "show_workspace"
    CANCEL_RUN = "cancel_run"
    RETRY_RUN = "retry_run"
    RUN_WORKFLOW = "run_workflow"
    FOLLOW_RUN = "follow_run"
    FORK_RUN = "fork_run"
    RAISE_RUN_LIMIT = "raise_run_limit"
    RESUME_RUN = "resume_run"
    SIGNAL_RUN = "signal_run"
    ENABLE_WORKFLOW = "enable_workflow"
    START_DAEMON = "start_daemon"
    START_WORKER = "start_worker"
    TAKE_OVER_SESSION = "take_over_session"
    VERIFY_STATE = "verify_state"


class NextStep(NamedTuple):
    """An action, and what it is about as far as that is known."""

    action: Action
    agent: str | None = None
    job: str | None = None
    session: str | None = None
    item: str | None = None
    limit: str | None = None
    """The limit to raise, and the value to raise it to."""
    maximum: str | None = None
    workspace: str | None = None
    run: str | None = None
    workflow: str | None = None
    event: str | None = None
    """The event that a run waits for."""


SpellStep = Callable[[NextStep], str]
"""How a surface writes a step: the command line as a command, the API as a request."""

PLAIN = {
    Action.ACCEPT_CONFIG: "accept the configuration",
    Action.ACCEPT_ITEM: "accept {item}",
    Action.ACKNOWLEDGE_DAMAGE: "acknowledge the damage",
    Action.ANSWER_INBOX_ITEM: "answer {item} in the inbox",
    Action.ANSWER_QUESTION: "answer the question of {item} in the inbox",
    Action.APPLY_RETENTION: "apply the retention plan",
    Action.APPROVE_ITEM: "approve {item}",
    Action.BUILD_IMAGE: "build the image of containers",
    Action.CANCEL_JOB: "cancel {job}",
    Action.CHECK_CONFIG: "check the fleet file",
    Action.CHECK_STATE: "check the state directory",
    Action.CREATE_FLEET: "create a fleet file",
    Action.DISMISS_ITEM: "dismiss {item}",
    Action.EXPORT_SESSION: "export {session}",
    Action.FOLLOW_JOB: "follow {job}",
    Action.IMPORT_CLAUDE: "import it from Claude Code",
    Action.IMPORT_HERDCTL: "import it from herdctl",
    Action.IMPORT_LASTLIGHT: "import it from Last Light",
    Action.LIST_AGENTS: "list the agents",
    Action.LIST_CHECKPOINTS: "list the checkpoints of {job}",
    Action.LIST_INBOX: "list the inbox",
    Action.LIST_JOBS: "list the jobs",
    Action.LIST_SCHEDULES: "list the schedules",
    Action.LIST_SESSIONS: "list the sessions",
    Action.MANAGE_DAEMON: "use the daemon that runs, restart it or stop it",
    Action.PLAN_RETENTION: "look at the retention plan",
    Action.RAISE_JOB_LIMIT: "resume {job} and raise {limit} to {maximum}",
    Action.RAISE_SHARED_LIMIT: "raise the limit that {agent} reached, then resume {job}",
    Action.RAISE_ITEM: "raise the limit of {item}",
    Action.REBUILD_STATE: "rebuild the database from the ledger",
    Action.REJECT_ITEM: "reject {item}",
    Action.REPAIR_STATE: "repair the state directory",
    Action.REPLY_ITEM: "reply to {item}",
    Action.RESTART_DAEMON: "restart the daemon",
    Action.RESUME_JOB: "resume {job}",
    Action.RESUME_JOB_WITH_PROMPT: "resume {job} with a prompt",
    Action.RESUME_SESSION_AS: "resume {session} as {agent}",
    Action.RESUME_SESSION_WITH_PROMPT: "resume {session} with a prompt",
    Action.RETRY_ITEM: "retry {item}",
    Action.RETRY_JOB: "retry {job}",
    Action.RUN: "run {agent}",
    Action.RUN_IN_BRANCH: "run {agent} in a branch of the session",
    Action.RUN_IN_CHANNEL: "run {agent} in a channel",
    Action.RUN_IN_SESSION: "run {agent} in {session}",
    Action.RUN_WITH_PROMPT: "run {agent} with a prompt",
    Action.SALVAGE_STATE: "rebuild the database without what cannot be read",
    Action.SHOW_CONFIG: "check the configuration of {agent}",
    Action.SHOW_EVENTS: "look at the events of {job}",
    Action.SHOW_INBOX_ITEM: "look at {item} in the inbox",
    Action.SHOW_JOB: "look at {job}",
    Action.SHOW_LIMITS: "look at the limits of {agent}",
    Action.SHOW_STATUS: "look at the status of the fleet",
    Action.START_DAEMON: "start the daemon",
    Action.START_WORKER: "start a worker",
    Action.TAKE_OVER_SESSION: "take over {session}",
    Action.VERIFY_STATE: "verify the state directory",
    Action.LIST_WORKSPACES: "list the workspaces",
    Action.LIST_RUNS: "list the runs",
    Action.LIST_WORKFLOWS: "list the workflows",
    Action.SHOW_RUN: "look at {run}",
    Action.SHOW_WORKFLOW: "look at workflow {workflow}",
    Action.CANCEL_RUN: "cancel {run}",
    Action.RETRY_RUN: "retry {run}",
    Action.RUN_WORKFLOW: "run workflow {workflow}",
    Action.FOLLOW_RUN: "follow {run}",
    Action.FORK_RUN: "fork {run} at a phase",
    Action.RAISE_RUN_LIMIT: "raise the limit of {run}",
    Action.RESUME_RUN: "resume {run}",
    Action.SIGNAL_RUN: "send {event} to {run}",
    Action.ENABLE_WORKFLOW: "enable workflow {workflow}",
    Action.SHOW_WORKSPACE: "look at workspace {workspace}",
    Action.CLEAN_WORKSPACE: "remove workspace {workspace} with its changes",
    Action.SHOW_DIFF: "look at the changes of {job}",
    Action.APPLY_JOB: "apply the changes of {job}",
    Action.MERGE_JOB: "merge the changes of {job}",
}
"""Each action in words that fit every surface."""


def plain_step(step: NextStep) -> str:
    """Return the step in words that fit every surface."""
    return PLAIN[step.action].format(
        agent=step.agent or "the agent",
        job=step.job or "the job",
        session=step.session or "the session",
        item=step.item or "the item",
        limit=step.limit or "the limit",
        maximum=step.maximum or "a higher value",
        workspace=step.workspace or "the workspace",
        run=step.run or "the run",
        workflow=step.workflow or "the workflow",
        event=step.event or "the event",
    )


class Advice(NamedTuple):
    """What to do about something: in words, as a step, or both. The words are complete without the step."""

    words: str | None = None
    step: NextStep | None = None

    def text(self, spell: SpellStep | None = None) -> str | None:
        """Return the advice on one line, with the step as `spell` writes it; None when there is none."""
        if self.step is None or (spell is None and self.words is not None):
            return self.words
        spelled = (spell or plain_step)(self.step)
        return spelled if self.words is None else f"{self.words}: {spelled}"
