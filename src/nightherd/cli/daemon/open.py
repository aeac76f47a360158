"""`nightherd open`: log a browser of this user in to the dashboard.

The login code is in no command line: the browser is given a file that only this user can read, which leads to the page.
"""

from __future__ import annotations

import json
import os
import webbrowser
from collections.abc import Callable
from contextlib import closing
from html import escape
from pathlib import Path
from typing import Any

import click

from nightherd.cli.invocation import Invocation, json_option
from nightherd.daemon.connection import SocketConnection
from nightherd.daemon.control import get_daemon
from nightherd.daemon.record import SERVING
from nightherd.errors import NightherdError, RefusedError
from nightherd.files.permission import state_file_error
from nightherd.web.socket_file import CODES
from nightherd.wiring.machine import refuse_agents
from nightherd.wiring.stores import system_clock

REDIRECT = "open.html"
"""The file in the state directory that leads the browser to the page. Its code works once and for a minute."""
OK = 200
ENABLE = "set web.enabled: true in the fleet file; a running daemon then begins to serve by itself"
PRINT = "nightherd open --print"


@click.command("open", epilog="Example: nightherd open")
@click.option("--print", "is_printed", is_flag=True, help="Print the link instead of opening it.")
@json_option
@click.pass_obj
def open_dashboard(invocation: Invocation, is_printed: bool) -> None:
    """Open the dashboard in a browser. You are logged in by a link that works once, for 60 seconds."""
    screen = invocation.screen
    link = ask_for_link(invocation.new_state_directory())
    if screen.is_json:
        screen.document("login_code", link, system_clock().now())
        return
    if is_printed:
        screen.show(str(link["url"]))
        screen.flush()
        screen.say("it works once, for 60 seconds")
        return
    url = str(link["url"])
    if not open_in_browser(invocation.new_state_directory(), url):
        raise RefusedError("no browser could be started here", hint=PRINT)
    screen.say(f"opened {url.partition('#')[0]} (if no page appears: {PRINT})")


def ask_for_link(state_dir: Path) -> dict[str, Any]:
    """Return a link that logs a browser in. `RefusedError` when no dashboard is served."""
    refuse_agents(state_dir, "logging in to the dashboard", "is for people")
    record = get_daemon(state_dir)
    if record.socket is None:
        raise RefusedError(f"process {record.pid} runs without its API", hint=SERVING)
    if record.address is None:
        raise RefusedError("the dashboard is not served: web.enabled is not set", hint=ENABLE)
    with closing(SocketConnection(state_dir)) as connection:
        connection.request("POST", CODES, body=b"", headers={"content-length": "0"})
        answer = connection.getresponse()
        document = json.loads(answer.read())
    if answer.status != OK:
        detail, hint = document.get("detail"), document.get("hint")
        raise RefusedError(str(detail), hint=None if hint is None else str(hint))
    found = document["data"]
    assert isinstance(found, dict)  # noqa: S101 (the daemon's own document)
    return found


def open_in_browser(
    state_dir: Path, url: str, start: Callable[[str], bool] = webbrowser.open
) -> bool:
    """Start a browser at `url` through a file that only this user can read; whether one was found."""
    return start(write_redirect(state_dir, url).as_uri())


def write_redirect(state_dir: Path, url: str) -> Path:
    """Write the file that leads a browser to `url`, mode 0600, in the place of an earlier one."""
    path, target = state_dir / REDIRECT, escape(url)
    draft = path.with_name(f".{REDIRECT}.{os.getpid()}")
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0; url={target}"><title>nightherd</title></head>'
        f'<body><a href="{target}">Open the dashboard</a></body></html>\n'
    )
    try:
        draft.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(draft, flags, 0o600), "w") as file:
            file.write(page)
        draft.replace(path)
    except OSError as error:
        raise state_file_error(error, path, "write") from error
    return path


def open_at_start(state_dir: Path, say: Callable[[str], None]) -> None:
    """Open the dashboard because `web.open_browser` says so; that it cannot be opened stops nothing."""
    try:
        if not open_in_browser(state_dir, str(ask_for_link(state_dir)["url"])):
            say(f"no browser could be started for the dashboard; try: {PRINT}")
    except NightherdError as error:
        say(f"the dashboard was not opened: {error.message}")
