"""`nightherd container build`: the image that agents run in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import click

from nightherd.cli.containers.engine import configured_socket, report_document, show_report
from nightherd.cli.invocation import Invocation, invocation_of, json_option
from nightherd.cli.screen.render import neutralise
from nightherd.model.containers.image import ClaudeSource, ImageReport
from nightherd.model.containers.policy import DEFAULT_IMAGE
from nightherd.wiring.containers import build_image, check_image, open_engine, plan_image
from nightherd.wiring.stores import system_clock

if TYPE_CHECKING:
    from nightherd.runtimes.container.image import ImagePlan


@click.command("build", epilog="Example: nightherd container build --base node:22-bookworm")
@click.option("--tag", default=DEFAULT_IMAGE, help=f"Name of the image (default: {DEFAULT_IMAGE}).")
@click.option("--base", metavar="IMAGE", help="Image to start from; by default a slim Python.")
@click.option(
    "--claude",
    "source",
    type=click.Choice([one.value for one in ClaudeSource]),
    help="Copy the SDK's claude (default, if installed), install it from npm, or none.",
)
@json_option
@click.pass_context
def build(ctx: click.Context, tag: str, base: str | None, source: str | None) -> None:
    """Build the image agents run in. Then checks it, as `container check` does.

    Packages that the base image lacks are installed from its package manager.
    """
    invocation = invocation_of(ctx)
    screen = invocation.screen
    plan = plan_image(tag, base, ClaudeSource(source) if source else None, invocation.environ)
    report = anyio.run(_build, invocation, plan)
    if screen.is_json:
        data = {
            **report_document(report),
            "base": plan.base,
            "claude": plan.claude.value,
            "claude_version": plan.claude_version,
        }
        screen.document("container_image", data, system_clock().now())
    else:
        screen.show(f"built {neutralise(tag)} ({report.size_bytes // 1_000_000} MB)")
        show_report(screen, report)
    ctx.exit(0 if report.is_usable else 1)


async def _build(invocation: Invocation, plan: ImagePlan) -> ImageReport:
    screen = invocation.screen

    def say(line: str) -> None:
        if not screen.is_json:
            screen.say(neutralise(line))

    async with open_engine(configured_socket(invocation), invocation.environ) as engine:
        await build_image(engine, plan, say)
        needs_claude = plan.claude is not ClaudeSource.NONE
        return await check_image(engine, plan.tag, invocation.environ, needs_claude=needs_claude)
