"""Deciding a change: given the rows as they are, which rows it writes, or why it is refused.

This and `decisions/` are the one place that knows what a change does. Stores only read the rows asked for
and write the rows given, inside one transaction; so every store means the same by every change, and the
rows written are the images the ledger keeps (INV-TERMINAL, INV-FENCE, INV-ONCE).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from nightherd.errors import RefusedError
from nightherd.model import change as changes
from nightherd.model.access import browser_session as browser_changes
from nightherd.model.access import decisions as browsers
from nightherd.model.access import visit_decisions as visits
from nightherd.model.access.visit import MarkVisit
from nightherd.model.change import Answer, Applied, Change, Refused, Why
from nightherd.model.chat import changes as chat_changes
from nightherd.model.chat import decisions as chat
from nightherd.model.chat import post_decisions as posts
from nightherd.model.checkpoints import decisions as checkpoints
from nightherd.model.checkpoints.checkpoint import RemoveCheckpoints
from nightherd.model.decisions import records
from nightherd.model.decisions.rows import Rows
from nightherd.model.inbox import changes as inbox_changes
from nightherd.model.inbox import decisions as inbox
from nightherd.model.inbox import token as token_changes
from nightherd.model.inbox import token_decisions as tokens
from nightherd.model.jobs import changes as job_changes
from nightherd.model.jobs import claim_decisions, runtime_decisions, suspend_decisions
from nightherd.model.jobs import decisions as jobs
from nightherd.model.jobs.changes import FailSuspended, FailWaiting
from nightherd.model.jobs.overrides import AmendJob
from nightherd.model.limits import decisions as limits
from nightherd.model.limits.spending import CountUsage
from nightherd.model.notifications import changes as notification_changes
from nightherd.model.notifications import decisions as notifications
from nightherd.model.push import decisions as pushes
from nightherd.model.push import subscription as push_changes
from nightherd.model.schedules import decisions as schedules
from nightherd.model.schedules.schedule import OverrideSchedule, PlanSchedule
from nightherd.model.sessions import changes as session_changes
from nightherd.model.sessions import decisions as sessions
from nightherd.model.work import changes as work_changes
from nightherd.model.work import decisions as work
from nightherd.model.workflows.conductor import changes as run_changes
from nightherd.model.workflows.conductor import decisions as runs
from nightherd.model.workflows.conductor.following import with_runs
from nightherd.model.workspaces import changes as workspace_changes
from nightherd.model.workspaces import decisions as workspaces

DECISIONS: Mapping[type[Change], Callable[[Any, Rows], Answer]] = {
    job_changes.SubmitJob: schedules.submit,
    job_changes.StartExecution: jobs.start,
    job_changes.RecordRuntimeSession: runtime_decisions.record_runtime_session,
    job_changes.RecordContainer: runtime_decisions.record_container,
    job_changes.SettleExecution: jobs.settle,
    job_changes.SuspendExecution: suspend_decisions.suspend,
    job_changes.ResumeJob: suspend_decisions.resume,
    FailSuspended: suspend_decisions.fail,
    FailWaiting: suspend_decisions.fail_waiting,
    AmendJob: suspend_decisions.amend,
    session_changes.ForkSession: sessions.fork,
    session_changes.UseSession: sessions.use,
    session_changes.RenameSession: sessions.rename,
    session_changes.ExpireSession: sessions.expire,
    session_changes.RemoveSession: sessions.remove,
    job_changes.LoseExecution: jobs.lose,
    job_changes.ClaimJob: claim_decisions.claim,
    job_changes.CancelJob: jobs.cancel,
    changes.RegisterWorker: claim_decisions.register,
    changes.ExtendLease: claim_decisions.extend,
    changes.EndWorker: claim_decisions.end,
    changes.ResetAgent: schedules.reset_agent,
    changes.FireSlot: schedules.fire,
    changes.RecordDelivery: records.record,
    PlanSchedule: schedules.plan,
    OverrideSchedule: schedules.override,
    changes.SaveCheckpoint: checkpoints.save_checkpoint,
    RemoveCheckpoints: checkpoints.remove_checkpoints,
    CountUsage: limits.count_usage,
    job_changes.CorrectJob: records.correct,
    changes.AdoptRows: records.adopt,
    session_changes.RefreshAdopted: records.refresh,
    session_changes.AdoptTurns: records.adopt_turns,
    inbox_changes.AskPerson: inbox.ask,
    inbox_changes.AskAboutJob: inbox.ask_about_job,
    inbox_changes.AnswerItem: inbox.answer,
    inbox_changes.ExpireItem: inbox.expire,
    inbox_changes.WithdrawItem: inbox.withdraw,
    token_changes.AddToken: tokens.add,
    token_changes.RevokeToken: tokens.revoke,
    token_changes.MakeLink: tokens.make_link,
    browser_changes.AddBrowserSession: browsers.add,
    browser_changes.EndBrowserSessions: browsers.end,
    MarkVisit: visits.mark,
    notification_changes.DeclareTargets: notifications.declare,
    notification_changes.FollowLedger: notifications.follow,
    notification_changes.QueueNotifications: notifications.queue,
    notification_changes.ClaimNotification: notifications.claim,
    notification_changes.SettleNotification: notifications.settle,
    notification_changes.RetryTarget: notifications.retry,
    push_changes.AddPushSubscription: pushes.add,
    push_changes.EndPushSubscriptions: pushes.end,
    workspace_changes.UseWorkspace: workspaces.use,
    workspace_changes.LeaveWorkspace: workspaces.leave,
    workspace_changes.MoveWorkspace: workspaces.move,
    workspace_changes.NoteWorkspace: workspaces.note,
    workspace_changes.LandWorkspace: workspaces.land,
    workspace_changes.RemoveWorkspace: workspaces.remove,
    run_changes.StartRun: runs.start,
    run_changes.AdvanceRun: runs.advance,
    run_changes.CancelRun: runs.cancel,
    run_changes.SendEvent: runs.send_event,
    run_changes.MergeScratch: runs.merge_scratch,
    run_changes.RaiseRun: runs.raise_limits,
    run_changes.OverrideWorkflow: runs.override,
    chat_changes.SetBotState: chat.set_bot_state,
    chat_changes.RecordMessage: chat.record_message,
    chat_changes.SeeMessage: chat.see_message,
    chat_changes.StartTurn: chat.start_turn,
    chat_changes.JoinTurn: chat.join_turn,
    chat_changes.NoteTurn: chat.note_turn,
    chat_changes.FinishTurn: chat.finish_turn,
    chat_changes.QueuePosts: posts.queue,
    chat_changes.EditPost: posts.edit,
    chat_changes.ClaimPost: posts.claim,
    chat_changes.SettlePost: posts.settle,
    chat_changes.ResetConversation: chat.reset,
    chat_changes.EndMessagingSessions: chat.end_sessions,
    chat_changes.ForgetChat: chat.forget,
    work_changes.ReserveWork: work.reserve,
    work_changes.StepWork: work.step,
    work_changes.HoldWork: work.hold,
    work_changes.LoseWork: work.lose,
    work_changes.EndWork: work.end,
    work_changes.NoteWork: work.note,
    work_changes.SettleWork: work.settle,
    work_changes.ReleaseWork: work.release,
    work_changes.SetSourceState: work.set_source_state,
}
"""Who decides which change."""

IMPORTED = frozenset(
    {changes.AdoptRows, session_changes.RefreshAdopted, session_changes.AdoptTurns}
)
"""Changes that take over what happened elsewhere: nobody is asked about it."""


def decide(change: Change, rows: Rows) -> Answer:
    """What `change` does to `rows`: every row to write, or the reason it is refused. Writes nothing."""
    answer = DECISIONS[type(change)](change, rows)
    if isinstance(answer, Applied) and type(change) not in IMPORTED:
        return with_runs(change, inbox.with_items(change, answer, rows), rows)
    return answer


Write = Callable[[Applied], None]
"""Writes the rows of one decision, so that the next one sees them."""


def carry_out(change: Change, rows: Rows, write: Write) -> Answer:
    """Decide `change` and all that follows from it, writing as it goes; return the answer to `change` itself.

    What follows is part of the change: if it is refused, `RefusedError` is raised, and the store undoes all of it
    (INV-RUNS).
    """
    answer = decide(change, rows)
    if not isinstance(answer, Applied):
        return answer
    write(answer)
    waiting = deque(answer.then)
    while waiting:
        following = waiting.popleft()
        then = decide(following, rows)
        if isinstance(then, Refused):
            if then.why in HARMLESS:
                continue
            raise RefusedError(
                f"{type(following).__name__} was refused while {type(change).__name__} was carried out:"
                f" {then.message}"
            )
        write(then)
        waiting.extend(then.then)
    return answer


HARMLESS = frozenset({Why.STATUS, Why.DECIDED, Why.DUPLICATE})
"""Refusals of what follows that say it is so already."""
