"""ForgottenChat: how much of chat retention removes."""

from __future__ import annotations

import msgspec


class ForgottenChat(msgspec.Struct, frozen=True, kw_only=True):
    """How much of chat was removed, or would be."""

    texts: int = 0
    """Of messages and posts."""
    files: int = 0
    """That people sent, and that were kept for jobs with a workspace of their own."""

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to remove."""
        return not (self.texts or self.files)


NOTHING_FORGOTTEN = ForgottenChat()
