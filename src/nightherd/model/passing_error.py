"""Errors of the operating system that can pass: the same operation may succeed later without a repair."""

from __future__ import annotations

import errno

PASSING_ERRNOS = frozenset(
    {
        errno.EAGAIN,
        errno.EBUSY,
        errno.EDQUOT,
        errno.EINTR,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENOSPC,
        errno.ESTALE,
        errno.ETXTBSY,
    }
)
"""Too little of something, or a file that is in use."""
NO_THREAD = "can't start new thread"
"""What Python says about EAGAIN when it starts a thread."""


def can_pass(error: BaseException) -> bool:
    """Whether the operation that raised `error` may succeed later without a repair."""
    match error:
        case OSError():
            return error.errno in PASSING_ERRNOS
        case RuntimeError():
            return NO_THREAD in str(error)
        case _:
            return isinstance(error, MemoryError)
