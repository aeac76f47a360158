"""Folders of attachments, for jobs that work in a directory of their own: one for each conversation, below the state directory.

The job's directory is made after the files were fetched, and snapshots of it are what the job has done: the files are beside
it. A container sees the folder of its own conversation at the same path, read-only, and nothing else of the state directory.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from nightherd.engine.chat.send_file import TRIGGERS
from nightherd.engine.contexts import WorkerContext
from nightherd.model.chat.conversation import ConversationId
from nightherd.model.chat.message import ChatTurn
from nightherd.model.jobs.job import Job
from nightherd.ports import StateReader

ATTACHMENTS = "attachments"
"""Below the directory of chat."""
NAME_LENGTH = 24


def attachment_folder(directory: str, conversation: ConversationId) -> str:
    """Return the folder of a conversation; `directory` is where files on their way to and from people are kept."""
    name = sha256(conversation.encode(errors="surrogateescape")).hexdigest()[:NAME_LENGTH]
    return str(Path(directory, ATTACHMENTS, name))


def folders_for_job(job: Job, context: WorkerContext) -> tuple[str, ...]:
    """Return the folder that a job may read, if a chat turn is behind it and its conversation has one.

    The turn's own job may, its child jobs, and jobs that continue or fork one of those: their prompts name files there.
    """
    turn = None if context.chat_directory is None else _turn_behind(job, context.reader)
    if turn is None or context.chat_directory is None:
        return ()
    folder = attachment_folder(context.chat_directory, turn.conversation_id)
    return (folder,) if Path(folder).is_dir() else ()


def _turn_behind(job: Job, reader: StateReader) -> ChatTurn | None:
    """The turn of the first job that led to this one."""
    found: Job | None = job
    while found is not None:
        if found.trigger_type in TRIGGERS:
            turn = reader.find_chat_turn(found.id)
            if turn is not None:
                return turn
        earlier = found.parent_job_id or found.forked_from or found.resumed_from
        found = None if earlier is None else reader.find_job(earlier)
    return None
