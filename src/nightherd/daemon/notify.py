"""What systemd wants to hear: that the service is ready, lives, reloads and ends. Silence without systemd."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

ADDRESS = "NOTIFY_SOCKET"
WATCHDOG = "WATCHDOG_USEC"
WATCHDOG_PID = "WATCHDOG_PID"


class Notifier:
    """Tells the service manager; what it does not hear is no failure."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = environ.get(ADDRESS, "")
        self._watchdog_s = _seconds(environ)

    @property
    def watchdog_s(self) -> float | None:
        """How often a sign of life is wanted: half of what the manager waits for; None for never."""
        return self._watchdog_s

    def ready(self) -> None:
        """It works."""
        self._send("READY=1")

    def alive(self) -> None:
        """It still does."""
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """It finishes what it runs."""
        self._send("STOPPING=1")

    def status(self, text: str) -> None:
        """What it is doing, on one line."""
        self._send(f"STATUS={text.splitlines()[0] if text else ''}")

    def _send(self, text: str) -> None:
        if not self._address:
            return
        # A leading @ is how the manager spells a name without a file.
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
                channel.sendto(text.encode(), address)
        except OSError:
            return


def _seconds(environ: Mapping[str, str]) -> float | None:
    wanted, pid = environ.get(WATCHDOG, ""), environ.get(WATCHDOG_PID, "")
    if not wanted.isdecimal() or (pid and pid != str(os.getpid())):
        return None
    return int(wanted) / 2_000_000
