"""What systemd wants to hear: that the service is ready, lives, reloads and ends. Silence without systemd."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Mapping
from pathlib import Path

import msgspec

from nightherd.errors import InvalidValueError

ADDRESS = "NOTIFY_SOCKET"
WATCHDOG = "WATCHDOG_USEC"
WATCHDOG_PID = "WATCHDOG_PID"


class Notifier:
    """Notifies the service manager; a lost notice is not a failure."""

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


TEMPLATE = """\
# Written by nightherd service install.
[Unit]
Description=nightherd: the fleet in {directory}
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
{environment}ExecReload=/bin/kill -HUP $MAINPID
WorkingDirectory={directory}
# Jobs that run are finished; what is not done by then is cancelled, and never lost.
KillMode=mixed
TimeoutStopSec={stop_s}
TimeoutStartSec=120
WatchdogSec=60
Restart=on-failure
RestartSec=5
# A configuration that cannot be used does not get better by trying again.
RestartPreventExitStatus=78
UMask=0077

[Install]
WantedBy={target}
"""


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """What the unit runs, and for whom."""

    program: Path
    fleet_file: Path
    state_dir: Path
    is_user: bool
    path: tuple[str, ...] = ()
    """Directories in which agents find programs; empty for systemd's own."""
    stop_s: int = 600


def unit_path(directory: Path, fleet_file: Path) -> Path:
    """Where the unit of a fleet belongs: beside that of another directory of the same name, not in its place."""
    path = directory / unit_name(fleet_file)
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return path
    if f"WorkingDirectory={_plain(fleet_file.parent)}" in lines:
        return path
    mark = hashlib.sha256(os.fsencode(fleet_file.parent)).hexdigest()[:8]
    return directory / f"{path.stem}-{mark}.service"


def unit_name(fleet_file: Path) -> str:
    """What the unit is called, after the directory that the fleet stands in."""
    name = "".join(
        letter if letter.isascii() and letter.isalnum() else "-"
        for letter in fleet_file.parent.name
    ).strip("-")
    return f"nightherd-{name or 'fleet'}.service"


def unit_text(service: Service) -> str:
    """The unit file."""
    arguments = [
        str(service.program),
        "--config",
        str(service.fleet_file),
        "--state-dir",
        str(service.state_dir),
        "start",
    ]
    return TEMPLATE.format(
        command=" ".join(_quoted(argument) for argument in arguments),
        environment=_environment(service.path),
        directory=_plain(service.fleet_file.parent),
        stop_s=service.stop_s,
        target="default.target" if service.is_user else "multi-user.target",
    )


def _environment(path: tuple[str, ...]) -> str:
    """The line that sets PATH. What a unit cannot hold is left out of it."""
    usable = [one for one in path if all(ord(letter) >= 32 for letter in one)]
    if not usable:
        return ""
    value = os.pathsep.join(usable).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'Environment="PATH={value}"\n'


def _quoted(text: str) -> str:
    """`text` as one word of a command line in a unit."""
    if any(ord(letter) < 32 for letter in text):
        raise InvalidValueError(f"{text!r} cannot be written in a unit file")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if escaped != text or " " in text else text


def _plain(path: Path) -> str:
    """A path where a unit takes it as it is, up to the end of the line."""
    if any(ord(letter) < 32 for letter in str(path)):
        raise InvalidValueError(f"{str(path)!r} cannot be written in a unit file")
    return str(path).replace("%", "%%")
