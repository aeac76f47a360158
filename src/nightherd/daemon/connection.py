"""A connection to the daemon's API over its unix socket."""

from __future__ import annotations

import http.client
import socket
from pathlib import Path

from nightherd.daemon.record import SERVING, SOCKET, find_daemon
from nightherd.errors import NoDaemonError
from nightherd.next_step import Action, NextStep
from nightherd.web.socket_file import connect

TIMEOUT_S = 60.0


class SocketConnection(http.client.HTTPConnection):
    """A connection to the daemon of `state_dir`."""

    def __init__(self, state_dir: Path, timeout_s: float = TIMEOUT_S) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._state_dir = state_dir
        self._timeout_s = timeout_s

    def connect(self) -> None:
        """Connect; `NoDaemonError` when nothing listens."""
        try:
            self.sock: socket.socket = connect(self._state_dir / SOCKET, self._timeout_s)
        except OSError as error:
            raise self._no_daemon() from error

    def _no_daemon(self) -> NoDaemonError:
        record = find_daemon(self._state_dir)
        if record is not None and record.socket is None:
            return NoDaemonError(
                f"process {record.pid} runs the fleet, but without its API",
                hint=f"{SERVING}, then restart the daemon",
                next_step=NextStep(Action.RESTART_DAEMON),
            )
        return NoDaemonError(
            f"no daemon listens at {self._state_dir / SOCKET}",
            next_step=NextStep(Action.START_DAEMON),
        )
