"""`nightherd container`: the group, and the list of containers."""

from __future__ import annotations

from typing import Any

import anyio
import click

from nightherd.cli.containers.engine import configured_socket
from nightherd.cli.invocation import Invocation, json_option
from nightherd.cli.lazy import Entry, LazyGroup
from nightherd.cli.screen.render import relative, table
from nightherd.views.jobs.jobs import timestamp
from nightherd.wiring.containers import ASK_S, list_containers, open_engine
from nightherd.wiring.stores import system_clock

HEADING = ("ID", "NAME", "STATE", "AGE", "EXECUTION", "IMAGE")


@click.group(
    "container",
    cls=LazyGroup,
    entries={
        "list": Entry("nightherd.cli.containers.list:list_all", "List containers of agents."),
        "build": Entry("nightherd.cli.containers.build:build", "Build the image agents run in."),
        "check": Entry(
            "nightherd.cli.containers.check:check", "Check whether an image can run agents."
        ),
    },
    default="list",
    epilog="Example: nightherd container build",
)
def container() -> None:
    """List containers and build their image."""


@click.command("list", epilog="Example: nightherd container list")
@json_option
@click.pass_obj
def list_all(invocation: Invocation) -> None:
    """List containers of agents. Shows those of every fleet on this machine, newest first."""
    screen, now = invocation.screen, system_clock().now()
    rows = anyio.run(_list, invocation)
    if screen.is_json:
        data = [{**row, "created_at": timestamp(row["created_at"])} for row in rows]
        screen.document("containers", data, now)
        return
    if not rows:
        screen.say("there are no containers of agents")
        return
    cells = [
        (
            row["id"][:12],
            row["name"],
            row["state"] or "-",
            relative(row["created_at"], now),
            row["execution"] or "-",
            row["image"] or "-",
        )
        for row in rows
    ]
    screen.show(table(HEADING, cells, width=screen.width, style=screen.out))


async def _list(invocation: Invocation) -> list[dict[str, Any]]:
    socket = configured_socket(invocation)
    async with open_engine(socket, invocation.environ, call_s=ASK_S) as engine:
        return await list_containers(engine)
