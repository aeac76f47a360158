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
from nightherd.model.jobs.job import Job

ATTACHMENTS = "attachments"
"""Below the directory of chat."""
NAME_LENGTH = 24


def attachment_folder(directory: str, conversation: ConversationId) -> str:
    """Return the folder of a conversation; `directory` is where files on their way to and from people are kept."""
    name = sha256(conversation.encode(errors="surrogateescape")).hexdigest()[:NAME_LENGTH]
    return str(Path(directory, ATTACHMENTS, name))


def folders_for_job(job: Job, context: WorkerContext) -> tuple[str, ...]:
    """Return the folder that the job of a chat turn may read, if its conversation has one."""
    if context.chat_directory is None or job.trigger_type not in TRIGGERS:
        return ()
    turn = context.reader.find_chat_turn(job.id)
    if turn is None:
        return ()
    folder = attachment_folder(context.chat_directory, turn.conversation_id)
    return (folder,) if Path(folder).is_dir() else ()
