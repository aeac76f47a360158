"""`nightherd container check`: whether an image can run agents."""

from __future__ import annotations

import anyio
import click

from nightherd.cli.containers.engine import configured_socket, report_document, show_report
from nightherd.cli.invocation import Invocation, invocation_of, json_option
from nightherd.model.containers.image import ImageReport
from nightherd.model.containers.policy import DEFAULT_IMAGE
from nightherd.wiring.containers import CHECK_S, check_image, open_engine
from nightherd.wiring.stores import system_clock


@click.command("check", epilog="Example: nightherd container check my/image:1")
@click.argument("image", metavar="IMAGE", default=DEFAULT_IMAGE)
@click.option(
    "--without-claude",
    is_flag=True,
    help="Leave claude out (for the runtimes native and scripted).",
)
@json_option
@click.pass_context
def check(ctx: click.Context, image: str, without_claude: bool) -> None:
    """Check whether an image can run agents. Lists what it needs and what it has.

    Ends with exit code 1 when something required is missing.
    """
    invocation = invocation_of(ctx)
    screen = invocation.screen
    report = anyio.run(_check, invocation, image, not without_claude)
    if screen.is_json:
        screen.document("container_check", report_document(report), system_clock().now())
    else:
        show_report(screen, report)
    ctx.exit(0 if report.is_usable else 1)


async def _check(invocation: Invocation, image: str, needs_claude: bool) -> ImageReport:
    socket = configured_socket(invocation)
    async with open_engine(socket, invocation.environ, call_s=CHECK_S) as engine:
        return await check_image(engine, image, invocation.environ, needs_claude=needs_claude)
