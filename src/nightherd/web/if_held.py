"""`If-Held`: what to do with a job whose session is held by a suspended job that waits for a person.

Programs queue it. A person is told, and chooses: the command line asks for that with `If-Held: refuse`.
"""

from __future__ import annotations

from typing import Final

IF_HELD = "if-held"
WAIT: Final = "wait"
REFUSE: Final = "refuse"
