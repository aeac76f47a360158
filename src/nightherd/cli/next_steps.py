"""What to type next: the command for each action that an error suggests."""

from __future__ import annotations

from nightherd.errors import NightherdError
from nightherd.next_step import Action, Advice, NextStep

COMMANDS = {
    Action.ACCEPT_CONFIG: "nightherd reload --accept",
    Action.ACCEPT_ITEM: "nightherd inbox accept {item}",
    Action.ANSWER_INBOX_ITEM: "nightherd inbox approve {item}, or nightherd inbox reject {item} -m REASON",
    Action.ACKNOWLEDGE_DAMAGE: "nightherd doctor --acknowledge",
    Action.APPLY_RETENTION: "nightherd retention apply",
    Action.ANSWER_QUESTION: "nightherd inbox reply {item} -m TEXT",
    Action.APPROVE_ITEM: "nightherd inbox approve {item}",
    Action.BUILD_IMAGE: "nightherd container build",
    Action.CANCEL_JOB: "nightherd jobs cancel {job}",
    Action.CHECK_CONFIG: "nightherd config check",
    Action.CHECK_STATE: "nightherd doctor",
    Action.CREATE_FLEET: "nightherd init",
    Action.DISMISS_ITEM: "nightherd inbox dismiss {item}",
    Action.EXPORT_SESSION: "nightherd session export {session} -o FILE",
    Action.FOLLOW_JOB: "nightherd jobs tail {job} -f",
    Action.IMPORT_CLAUDE: "nightherd import claude DIR",
    Action.IMPORT_HERDCTL: "nightherd import herdctl DIR",
    Action.IMPORT_LASTLIGHT: "nightherd import lastlight PATH",
    Action.LIST_AGENTS: "nightherd agent list",
    Action.LIST_CHECKPOINTS: "nightherd checkpoint list {job}",
    Action.LIST_INBOX: "nightherd inbox",
    Action.LIST_JOBS: "nightherd jobs",
    Action.LIST_SCHEDULES: "nightherd schedule list",
    Action.LIST_SESSIONS: "nightherd session list",
    Action.MANAGE_DAEMON: "nightherd status, nightherd restart or nightherd stop",
    Action.PLAN_RETENTION: "nightherd retention plan",
    Action.RAISE_JOB_LIMIT: "nightherd jobs resume {job} --raise {limit}={maximum}",
    Action.RAISE_SHARED_LIMIT: (
        "nightherd limits show {agent} to see the limit; raise it, then: nightherd jobs resume {job}"
    ),
    Action.REBUILD_STATE: "nightherd doctor --rebuild",
    Action.REPAIR_STATE: "nightherd doctor --fix",
    Action.RAISE_ITEM: "nightherd inbox raise {item} LIMIT=MAXIMUM",
    Action.REJECT_ITEM: "nightherd inbox reject {item} -m REASON",
    Action.REPLY_ITEM: "nightherd inbox reply {item} -m TEXT",
    Action.RESTART_DAEMON: "nightherd restart",
    Action.RESUME_JOB: "nightherd jobs resume {job}",
    Action.RESUME_JOB_WITH_PROMPT: "nightherd jobs resume {job} -p TEXT",
    Action.RESUME_SESSION_AS: "nightherd session resume {session} --agent {agent}",
    Action.RESUME_SESSION_WITH_PROMPT: "nightherd session resume {session} -p TEXT",
    Action.RETRY_JOB: "nightherd jobs retry {job}",
    Action.RETRY_ITEM: "nightherd inbox retry {item}",
    Action.RUN: "nightherd run {agent}",
    Action.RUN_IN_BRANCH: "nightherd run {agent} --branch",
    Action.RUN_IN_CHANNEL: "nightherd run {agent} --channel ID",
    Action.RUN_IN_SESSION: "nightherd run {agent} --resume {session}",
    Action.RUN_WITH_PROMPT: "nightherd run {agent} -p TEXT",
    Action.SALVAGE_STATE: "nightherd doctor --salvage",
    Action.SHOW_CONFIG: "nightherd config show {agent} --origin",
    Action.SHOW_EVENTS: "nightherd jobs tail {job}",
    Action.SHOW_INBOX_ITEM: "nightherd inbox show {item}",
    Action.SHOW_JOB: "nightherd jobs show {job}",
    Action.SHOW_LIMITS: "nightherd limits show {agent}",
    Action.SHOW_STATUS: "nightherd status",
    Action.START_DAEMON: "nightherd start --detach",
    Action.START_WORKER: "nightherd worker",
    Action.TAKE_OVER_SESSION: "nightherd session takeover {session}",
    Action.VERIFY_STATE: "nightherd doctor --verify",
    Action.LIST_WORKSPACES: "nightherd workspace list",
    Action.LIST_RUNS: "nightherd runs list",
    Action.LIST_WORKFLOWS: "nightherd workflow list",
    Action.SHOW_RUN: "nightherd runs show {run}",
    Action.SHOW_WORKFLOW: "nightherd workflow show {workflow}",
    Action.CANCEL_RUN: "nightherd runs cancel {run}",
    Action.RUN_WORKFLOW: "nightherd workflow run {workflow}",
    Action.RETRY_RUN: "nightherd runs retry {run}",
    Action.FOLLOW_RUN: "nightherd runs tail {run} -f",
    Action.FORK_RUN: "nightherd runs fork {run} --at PHASE",
    Action.RAISE_RUN_LIMIT: "nightherd runs raise {run} {limit}={maximum}",
    Action.RESUME_RUN: "nightherd runs resume {run}",
    Action.SIGNAL_RUN: "nightherd runs signal {run} {event}",
    Action.ENABLE_WORKFLOW: "nightherd workflow enable {workflow}",
    Action.SHOW_WORKSPACE: "nightherd workspace show {workspace}",
    Action.CLEAN_WORKSPACE: "nightherd workspace clean {workspace} --force",
    Action.SHOW_DIFF: "nightherd jobs diff {job}",
    Action.APPLY_JOB: "nightherd jobs apply {job}",
    Action.MERGE_JOB: "nightherd jobs merge {job}",
}
ACCEPT = COMMANDS[Action.ACCEPT_CONFIG]
"""What makes a change take effect that gives agents more permissions."""


def command_for(step: NextStep) -> str:
    """Return the command line of a step; what the step does not name is left for the reader to fill in."""
    return COMMANDS[step.action].format(
        agent=step.agent or "AGENT",
        job=step.job or "JOB",
        session=step.session or "SESSION",
        item=step.item or "ITEM",
        limit=step.limit or "LIMIT",
        maximum=step.maximum or "MAXIMUM",
        workspace=step.workspace or "WORKSPACE",
        run=step.run or "RUN",
        workflow=step.workflow or "WORKFLOW",
        event=step.event or "EVENT",
    )


def advice_for(error: NightherdError) -> str | None:
    """Return what a person at a shell can do about an error: its hint, its commands, or both."""
    first = Advice(error.hint, error.next_step).text(command_for)
    others = [command_for(step) for step in error.alternatives]
    return "; or: ".join(filter(None, [first, *others])) or None
