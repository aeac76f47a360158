"""`nightherd service`: a systemd unit that keeps a fleet running."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click

from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import Invocation, json_option
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.daemon.systemd import Service, unit_path, unit_text
from nightherd.errors import NightherdError
from nightherd.files.atomic import atomic_write_file
from nightherd.wiring.machine import is_lingering
from nightherd.wiring.stores import system_clock

SYSTEM_UNITS = Path("/etc/systemd/system")


@click.group(
    "service",
    cls=LazyGroup,
    entries={
        "install": Entry(
            "nightherd.cli.daemon.systemd:install", "Install a systemd unit for this fleet."
        ),
    },
    epilog="Example: nightherd service install --user",
)
def service() -> None:
    """Run the fleet under systemd."""


@click.command("install", epilog="Example: nightherd service install --user --dry-run")
@click.option("--user", is_flag=True, help="Install for your user instead of the whole system.")
@click.option("--dry-run", is_flag=True, help="Print the unit and change nothing.")
@json_option
@click.pass_obj
def install(invocation: Invocation, user: bool, dry_run: bool) -> None:
    """Install a systemd unit for this fleet. systemd restarts the daemon when it fails, except for configuration errors.

    The unit is checked with systemd-analyze if that is installed.
    """
    load_fleet_with_notices(invocation)
    screen, now = invocation.screen, system_clock().now()
    file = invocation.fleet_file().resolve()
    made = Service(
        program=_program(),
        fleet_file=file,
        state_dir=invocation.new_state_directory().resolve(),
        is_user=user,
        path=_search_path(invocation),
    )
    text, path = unit_text(made), unit_path(_directory(invocation, user), file)
    name = path.name
    is_checked = _verify(text, name)
    if not dry_run:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write_file(path, text, mode=0o644)
    manager = "systemctl --user" if user else "systemctl"
    if screen.is_json:
        data = {
            "path": str(path),
            "unit": text,
            "is_written": not dry_run,
            "is_checked": is_checked,
            "lingers": _lingers(invocation) if user else None,
        }
        screen.document("service", data, now)
        return
    if dry_run:
        screen.show(text.rstrip("\n"))
        return
    screen.show(str(path))
    screen.flush()
    screen.say(f"start it: {manager} daemon-reload && {manager} enable --now {name}")
    if user and _lingers(invocation) is not True:
        screen.say("to keep it running while you are logged out: loginctl enable-linger")


def _program() -> Path:
    """The command as systemd is to run it."""
    beside = Path(sys.executable).parent / "nightherd"
    found = str(beside) if beside.exists() else shutil.which("nightherd")
    if found is None:
        raise NightherdError("the command nightherd is not on PATH", hint="pip install nightherd")
    return Path(found)


def _search_path(invocation: Invocation) -> tuple[str, ...]:
    """Where agents find programs, `claude` among them: systemd's own PATH is shorter than a shell's."""
    given = invocation.environ.get("PATH", os.defpath).split(os.pathsep)
    beside = str(Path(sys.executable).parent)
    return tuple(dict.fromkeys(one for one in (*given, beside) if Path(one).is_absolute()))


def _lingers(invocation: Invocation) -> bool | None:
    return is_lingering(invocation.environ.get("USER") or str(os.getuid()))


def _directory(invocation: Invocation, is_user: bool) -> Path:
    if not is_user:
        return SYSTEM_UNITS
    home = (
        invocation.environ.get("XDG_CONFIG_HOME")
        or f"{invocation.environ.get('HOME', '~')}/.config"
    )
    return Path(home).expanduser() / "systemd" / "user"


def _verify(text: str, name: str) -> bool:
    """Whether systemd-analyze looked at the unit; `NightherdError` when it found something wrong."""
    tool = shutil.which("systemd-analyze")
    if tool is None:
        return False
    handle_directory = Path(os.environ.get("TMPDIR", "/tmp")) / f"nightherd-unit-{os.getpid()}"  # noqa: S108
    handle_directory.mkdir(mode=0o700)
    try:
        unit = handle_directory / name
        unit.write_text(text)
        done = subprocess.run(
            [tool, "verify", str(unit)], capture_output=True, text=True, check=False
        )
    finally:
        shutil.rmtree(handle_directory, ignore_errors=True)
    said = [line for line in done.stderr.splitlines() if name in line]
    if done.returncode != 0 and said:
        raise NightherdError(f"systemd-analyze reports a problem in the unit: {said[0]}")
    return True
