"""KeptFiles: files of chat below the state directory, for retention."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path


class KeptFiles:
    """Implements `ChatFiles`: what agents sent is in a folder for each job, what people sent in one for each conversation."""

    def __init__(self, chat: Path, attachments: Path) -> None:
        self._chat = chat
        self._attachments = attachments

    def remove(self, path: str) -> None:
        """Remove the file, and its job's folder if that is empty then."""
        file, chat = Path(path).resolve(), self._chat.resolve()
        if not file.is_relative_to(chat):
            return
        file.unlink(missing_ok=True)
        if file.parent.parent.parent == chat:
            with suppress(OSError):  # other files of the job are kept for longer
                file.parent.rmdir()

    def old_attachments(self, before: datetime, besides: Collection[str]) -> Sequence[str]:
        """Return the files that are older, by when they were fetched. No link is followed."""
        oldest, found = before.timestamp(), list[str]()
        for folder, folders, names in os.walk(self._attachments):
            if Path(folder) == self._attachments:
                folders[:] = [one for one in folders if one not in besides]
            for name in names:
                path = Path(folder, name)
                with suppress(OSError):  # its turn has just removed it
                    if path.lstat().st_mtime < oldest:
                        found.append(str(path))
        return sorted(found)

    def remove_attachment(self, path: str) -> None:
        """Remove the file, and the folders that are empty then."""
        file = Path(path)
        if not file.is_relative_to(self._attachments):
            return
        file.unlink(missing_ok=True)
        with suppress(OSError):  # other files are kept for longer
            for folder in file.parents:
                if folder == self._attachments:
                    break
                folder.rmdir()
