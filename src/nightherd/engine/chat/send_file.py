"""The tool `send_file`: the agent of a chat turn sends a file of its workspace into the conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from anyio import to_thread

from nightherd.decoding import convert
from nightherd.engine.contexts import WorkerContext
from nightherd.errors import NightherdError, RefusedError
from nightherd.model.agents.agent import Agent
from nightherd.model.agents.mcp import InjectedMcpServerDef, InjectedMcpToolDef, ToolAnswer
from nightherd.model.change import Refused
from nightherd.model.chat.changes import NoteTurn
from nightherd.model.chat.conversation import Conversation
from nightherd.model.chat.message import ChatTurn
from nightherd.model.chat.platform import LIMITS
from nightherd.model.chat.post import PostId, PostKind, QueuedPost, new_post, post_id
from nightherd.model.containers.mounts import WORKSPACE, is_within
from nightherd.model.jobs.job import Job, TriggerType
from nightherd.model.text import shorten
from nightherd.model.units import format_size
from nightherd.ports.outgoing_files import FileToKeep, KeptFile, OutgoingFiles

SERVER = "nightherd"
TOOL = "send_file"
TRIGGERS = frozenset({TriggerType.SLACK, TriggerType.DISCORD, TriggerType.CHAT})
MESSAGE_LIMIT = 1_000
"""Characters of what is said with a file."""
GONE = "the conversation is not waiting for this job any more"


def servers_for_turn(
    job: Job, agent: Agent, root: str | None, context: WorkerContext
) -> tuple[InjectedMcpServerDef, ...]:
    """Return what the job of a chat turn is offered besides its own tools; nothing for any other job.

    `root` is the workspace that the agent's directory is in, if it is not that directory itself.
    """
    files = context.outgoing_files
    if files is None or job.trigger_type not in TRIGGERS or not agent.runtime.takes_servers:
        return ()
    turn = context.reader.find_chat_turn(job.id)
    if turn is None or not turn.is_open:
        return ()
    conversation = context.reader.find_conversation(turn.conversation_id)
    if conversation is None:
        return ()
    sender = FileSender(turn, conversation, agent, root, files, context)
    return (sender.server(),)


class _Input(msgspec.Struct, frozen=True):
    path: str
    message: str = ""


class FileSender:
    """Sends files of one run."""

    def __init__(
        self,
        turn: ChatTurn,
        conversation: Conversation,
        agent: Agent,
        root: str | None,
        files: OutgoingFiles,
        context: WorkerContext,
    ) -> None:
        self._turn = turn
        self._conversation = conversation
        self._directory = agent.working_directory
        self._root = root or agent.working_directory
        self._is_contained = agent.container is not None
        self._files = files
        self._context = context

    def server(self) -> InjectedMcpServerDef:
        """Return the server with the tool."""
        limit = format_size(LIMITS[self._conversation.platform].file_bytes)
        return InjectedMcpServerDef(
            name=SERVER,
            tools=(
                InjectedMcpToolDef(
                    name=TOOL,
                    description=(
                        "Send a file of your workspace to the people in this conversation, such as a report, an "
                        f"image or a patch. At most {limit}. It is sent as it is now; once this returns you may "
                        "change or remove it. The same file with the same name is sent once."
                    ),
                    handler=self.send,
                    input_schema={
                        "type": "object",
                        "properties": {
                            "path": {
                                "type": "string",
                                "description": "The file, absolute or relative to your working directory.",
                            },
                            "message": {
                                "type": "string",
                                "description": "What to say with it, in a sentence.",
                            },
                        },
                        "required": ["path"],
                        "additionalProperties": False,
                    },
                    is_idempotent=True,
                ),
            ),
        )

    async def send(self, input: Mapping[str, Any]) -> ToolAnswer:
        """Keep a copy and queue its post; both are durable once this returns."""
        try:
            asked = convert(input, _Input)
            kept = await to_thread.run_sync(self._keep, asked.path)
            return ToolAnswer(text=await self._queue(kept, asked.message))
        except msgspec.ValidationError as error:
            return ToolAnswer(text=str(error), is_error=True)
        except NightherdError as error:
            return ToolAnswer(text=error.message, is_error=True)

    def _keep(self, path: str) -> KeptFile:
        if not path.strip():
            raise RefusedError("the path is empty")
        file = FileToKeep(
            path=self._outside(path),
            directory=self._directory,
            root=self._root,
            limit=LIMITS[self._conversation.platform].file_bytes,
            folder=self._turn.job_id,
        )
        mask = self._context.secrets.mask
        return self._files.keep(file, lambda text: mask(text) != text)

    def _outside(self, path: str) -> str:
        """The path on this machine: in a container the working directory has another name too."""
        is_other_name = (
            self._is_contained
            and is_within(path, WORKSPACE)
            and not any(is_within(path, one) for one in (self._directory, self._root))
        )
        return f"{self._directory}{path.removeprefix(WORKSPACE)}" if is_other_name else path

    async def _queue(self, kept: KeptFile, message: str) -> str:
        context = self._context
        id = post_id(self._turn.job_id, f"file-{kept.digest}")
        sent = f"{kept.name} ({format_size(kept.size)}) is on its way to the conversation"
        if context.reader.find_post(id) is not None:
            return f"{sent} already"
        change = NoteTurn(job_id=self._turn.job_id, posts=(self._post(id, kept, message),))
        (answer,) = await context.state.apply([change])
        if isinstance(answer, Refused):
            raise RefusedError(f"{kept.name} is not sent: {GONE}")
        return sent

    def _post(self, id: PostId, kept: KeptFile, message: str) -> QueuedPost:
        masked = str(self._context.secrets.mask(shorten(message.strip(), MESSAGE_LIMIT)))
        return new_post(
            id,
            self._conversation,
            PostKind.FILE,
            masked,
            self._context.clock.now(),
            job_id=self._turn.job_id,
            details={"path": kept.path, "name": kept.name},
        )
