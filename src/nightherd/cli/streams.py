"""Standard streams: also a caller that has closed them gets its command done."""

from __future__ import annotations

import os
import sys
from pathlib import Path

MODES = {"stdin": "r", "stdout": "w", "stderr": "w"}


def open_closed_streams() -> None:
    """Let every standard stream that is closed lead nowhere.

    Else the next file that is opened gets its number: what somebody prints would be written into the database.
    """
    for name, mode in MODES.items():
        if getattr(sys, name) is None:
            nowhere = Path(os.devnull).open(mode)  # noqa: SIM115 (for as long as the process lives)
            os.set_inheritable(nowhere.fileno(), True)
            setattr(sys, name, nowhere)
