"""Containers: the engine of this machine, and the image that agents run in."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from nightherd import __version__
from nightherd.errors import NightherdError, NotFoundError, RefusedError
from nightherd.wiring.stores import random_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping

    from nightherd.model.containers.image import ClaudeSource, ImageReport
    from nightherd.model.doctor import EngineFacts
    from nightherd.runtimes.container.engine import Engine
    from nightherd.runtimes.container.image import ImagePlan


ASK_S = 10.0
"""How long a person and the doctor wait for an answer of the engine."""
CHECK_S = 30.0
"""How long making a container may take that says what its image has."""


@asynccontextmanager
async def open_engine(
    configured: str | None, environ: Mapping[str, str], *, call_s: float | None = None
) -> AsyncIterator[Engine]:
    """Give the container engine of this machine, once it has answered; an error says why there is none.

    A call may take `call_s`.
    """
    from nightherd.runtimes.container.sockets import find_socket

    socket = find_socket(configured, environ)
    try:
        from nightherd.runtimes.container.engine import Engine
    except ModuleNotFoundError as error:
        raise RefusedError(
            "containers need the extra `docker`", hint="pip install 'nightherd[docker]'"
        ) from error
    async with Engine(socket) if call_s is None else Engine(socket, call_s=call_s) as engine:
        await engine.version(call_s=ASK_S if call_s is None else min(ASK_S, call_s))
        yield engine


def host_claude(environ: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the `claude` of the Claude Agent SDK, else the one on PATH, and its version; None for what there is not."""
    from nightherd.runtimes.claude import installation

    program = installation.bundled_program() or installation.program_on_path(environ)
    return program, installation.version_text(program, environ)


def plan_image(
    tag: str, base: str | None, asked: ClaudeSource | None, environ: Mapping[str, str]
) -> ImagePlan:
    """Return what is to be built; `RefusedError` when the asked `claude` is not here."""
    from pathlib import Path

    from nightherd.model.containers.image import ClaudeSource
    from nightherd.runtimes.claude.installation import bundled_program
    from nightherd.runtimes.container.image import DEFAULT_BASE, ImagePlan, choose_claude

    bundled = bundled_program()
    program = Path(bundled) if bundled is not None else None
    source = choose_claude(asked, program)
    # npm installs the version that this machine has, so that sessions can move.
    version = host_claude(environ)[1] if source is not ClaudeSource.NONE else None
    return ImagePlan(
        tag=tag,
        base=base or DEFAULT_BASE,
        claude=source,
        claude_program=program,
        claude_version=version,
        nightherd_version=__version__,
    )


async def build_image(engine: Engine, plan: ImagePlan, on_line: Callable[[str], object]) -> None:
    """Build the image of `plan`; `on_line` gets the progress."""
    from nightherd.runtimes.container import image

    await image.build_image(engine, plan, on_line)


async def check_image(
    engine: Engine, name: str, environ: Mapping[str, str], *, needs_claude: bool
) -> ImageReport:
    """Return what the image called `name` needs and has."""
    from nightherd.runtimes.container import image

    return await image.check_image(
        engine,
        name,
        name=f"nightherd-check-{random_text()(8)}",
        host_claude=host_claude(environ)[1],
        needs_claude=needs_claude,
    )


async def list_containers(engine: Engine) -> list[dict[str, Any]]:
    """Return the containers of all fleets of this machine, newest first."""
    from nightherd.runtimes.container import image

    return await image.list_containers(engine)


def engine_facts(
    configured: str | None,
    environ: Mapping[str, str],
    images: Iterable[str] = (),
    *,
    call_s: float = ASK_S,
) -> EngineFacts | tuple[str, str | None]:
    """Return what the engine of this machine says about itself and these images; or why there is none, and what to do."""
    from concurrent.futures import ThreadPoolExecutor

    import anyio
    from msgspec.structs import replace

    from nightherd.model.doctor import EngineFacts, ImageFacts

    async def facts_of(engine: Engine, image: str) -> ImageFacts | None:
        try:
            return ImageFacts.of(await engine.inspect_image(image))
        except NotFoundError:
            return None

    async def ask() -> EngineFacts:
        async with open_engine(configured, environ, call_s=call_s) as engine:
            version, info = await engine.version(), await engine.info()
            facts = EngineFacts.of(engine.socket, version, info)
            found = {image: await facts_of(engine, image) for image in images}
            return replace(facts, images=found)

    # The doctor's checks are not asynchronous, and run where an event loop does.
    with ThreadPoolExecutor(1) as threads:
        try:
            return threads.submit(anyio.run, ask).result()
        except NightherdError as error:
            return error.message, error.hint
