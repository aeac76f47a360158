"""Renaming although a scanner or an indexer may hold the target for a moment."""

from __future__ import annotations

import errno
from os import PathLike, fspath

from nightherd.files.calls import SYSTEM_CALLS, FileCalls

RETRIES = 3
FIRST_DELAY_S = 0.05
DELAYS_S = (*(FIRST_DELAY_S * 2**retry for retry in range(RETRIES)), None)
PASSING = frozenset({errno.EACCES, errno.EPERM})
"""What a rename fails with while somebody else has the target open; anything else will not pass."""


def rename_with_retry(
    source: str | PathLike[str], target: str | PathLike[str], *, calls: FileCalls = SYSTEM_CALLS
) -> None:
    """Rename `source` over `target`; on EACCES and EPERM three more times, 50, 100 and 200 ms apart.

    Any other error, and the fourth refusal, is raised as it is.
    """
    for delay in DELAYS_S:
        try:
            calls.rename(fspath(source), fspath(target))
            return
        except OSError as error:
            if delay is None or error.errno not in PASSING:
                raise
        calls.sleep(delay)
