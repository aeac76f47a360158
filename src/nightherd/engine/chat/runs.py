"""Runs of workflows that people start in a conversation: started once, and said there how they ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

import anyio

from nightherd.engine.chat.context import ChatContext
from nightherd.engine.operations.runs import get_workflow, record_run, run_change
from nightherd.errors import RefusedError
from nightherd.model.chat.accept import Spoken
from nightherd.model.chat.changes import QueuePosts
from nightherd.model.chat.conversation import Conversation, ConversationId, conversation_id
from nightherd.model.chat.files import shown_name
from nightherd.model.chat.incoming import IncomingMessage
from nightherd.model.chat.message import COMMAND_PREFIX, chat_message_id
from nightherd.model.chat.platform import Platform
from nightherd.model.chat.post import PostKind, new_post, post_id
from nightherd.model.jobs.job import TriggerType
from nightherd.model.units import format_usd
from nightherd.model.workflows.conductor.changes import StartRun
from nightherd.model.workflows.conductor.trigger_inputs import filled_inputs
from nightherd.model.workflows.definition import WorkflowDefinition
from nightherd.model.workflows.rows import WorkflowRun
from nightherd.model.workflows.run import RUN_LIFECYCLE, RunId, RunStatus
from nightherd.model.workflows.triggers import RunTrigger

TRIGGERS = {
    Platform.SLACK: TriggerType.SLACK,
    Platform.DISCORD: TriggerType.DISCORD,
    Platform.TERMINAL: TriggerType.CHAT,
}
PAUSE_S = 0.2
"""How long it is waited for more to happen before looking."""
MOST_RUNS = 2_000
"""Runs of the fleet that are looked at, those that ended last."""
LATEST = timedelta(hours=24)
"""How long after its end it is still said how a run ended."""
OVERLAP = timedelta(minutes=1)
"""How far a look goes back behind the last one: a run may have ended a moment before that is on record."""


async def start_run(name: str, text: str, spoken: Spoken, context: ChatContext) -> WorkflowRun:
    """Start a workflow that may be started in chats; the same message starts it once.

    `NightherdError` when there is none by that name, when its inputs are wrong, or when one of its agents cannot run.
    """
    fleet = context.fleet
    definition = get_workflow(fleet, name)
    messages = definition.triggers.chat
    if messages is None:
        raise RefusedError(
            f"workflow {shown_name(name)!r} is not started in chats: `on.chat: true`"
        )
    message = (
        spoken.message_id
        if isinstance(spoken, IncomingMessage)
        else f"{COMMAND_PREFIX}{spoken.command_id}"
    )
    id = chat_message_id(context.settings.bot, spoken.place.channel_id, message)
    trigger = RunTrigger(
        type=TRIGGERS[context.settings.platform],
        id=conversation_id(context.settings.bot, spoken.place),
        actor=spoken.user_name,
        channel=spoken.place.channel_id,
        payload={
            "text": text,
            "user": spoken.user_name,
            "user_id": spoken.user_id,
            "channel": spoken.place.channel_id,
            "thread": spoken.place.thread_id,
            "platform": context.settings.platform.value,
            "agent": context.settings.agent,
        },
    )
    inputs = filled_inputs(messages.inputs, trigger)

    def make(_: StartRun | None = None) -> StartRun:
        return run_change(definition, inputs, trigger, fleet, dedupe_key=f"{id}:{name}")

    started = await record_run(make, fleet)
    context.wake_jobs()
    context.signals.runs.set()
    return started.run


def workflows_text(workflows: Mapping[str, WorkflowDefinition], call: str) -> str:
    """Return which workflows can be started in chats, in markdown."""
    names = [name for name, one in sorted(workflows.items()) if one.triggers.chat is not None]
    if not names:
        return "No workflow is started in chats (`on.chat`)."
    lines = [
        f"- `{name}`" + (f": {text}" if (text := workflows[name].description) else "")
        for name in names
    ]
    return "\n".join((*lines, f"Start one with {call} and its name."))


def is_started_by(run: WorkflowRun, context: ChatContext) -> bool:
    """Whether a person started the run in a conversation of the bot; False for a run below such a run."""
    settings = context.settings
    return (
        run.parent_run_id is None
        and run.trigger_type is TRIGGERS[settings.platform]
        and run.trigger_id.startswith(f"{settings.bot}:")
    )


class ChatRuns:
    """Says in conversations how the runs ended that were started there, each once."""

    def __init__(self, context: ChatContext) -> None:
        self._context = context
        self._looked_at: datetime | None = None
        self._unplaced: dict[RunId, WorkflowRun] = {}
        """Runs that have ended before the message that started them was recorded: a kill came in between."""

    async def run(self) -> None:
        """Look whenever something happened, until cancelled."""
        while True:
            await self.look()
            await self._context.signals.runs.wait()
            await anyio.sleep(PAUSE_S)

    async def look(self) -> None:
        """Say how runs ended of which that was not said. How a sub-workflow ended is part of its run's end."""
        reader, now = self._context.fleet.reader, self._context.fleet.clock.now()
        ended = {**self._unplaced, **{run.id: run for run in self._ended(now)}}
        self._unplaced.clear()
        for run in ended.values():
            conversation = reader.find_conversation(ConversationId(run.trigger_id))
            if conversation is None:
                self._unplaced[run.id] = run
            elif reader.find_post(post_id(run.id, "end")) is None:
                await self._say_end(run, conversation)
        self._looked_at = now

    def _ended(self, now: datetime) -> Iterator[WorkflowRun]:
        """The bot's runs that ended since the last look; at first those of the last day."""
        looked_at = self._looked_at
        since = now - LATEST if looked_at is None else min(looked_at, now) - OVERLAP
        for status in RUN_LIFECYCLE.terminal:
            for run in reversed(self._context.fleet.reader.ended_runs(status, since, MOST_RUNS)):
                if is_started_by(run, self._context):
                    yield run

    async def _say_end(self, run: WorkflowRun, conversation: Conversation) -> None:
        context = self._context
        is_good = run.status is RunStatus.SUCCEEDED
        post = new_post(
            post_id(run.id, "end"),
            conversation,
            PostKind.NOTICE if is_good else PostKind.ERROR,
            str(context.fleet.secrets.mask(end_text(run))),
            context.fleet.clock.now(),
        )
        await context.fleet.state.apply([QueuePosts(posts=(post,))])
        context.signals.posts.set()


def end_text(run: WorkflowRun) -> str:
    """Return how a run ended, in markdown."""
    why = f": {run.error}" if run.error else ""
    cost = format_usd(run.cost_microusd)
    return f"Run `{run.id}` of **{shown_name(run.workflow_name)}** {run.status}{why} ({cost})."
