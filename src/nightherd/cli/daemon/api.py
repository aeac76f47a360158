"""`nightherd api`: one request to the running fleet, over its socket. Needs no token: the socket is its owner's; the one in NIGHTHERD_TOKEN says who asks."""

from __future__ import annotations

import codecs
import http.client
import json
import sys
from collections.abc import Iterator
from contextlib import closing

import click

from nightherd.cli.invocation import Invocation, invocation_of, json_option
from nightherd.daemon.connection import SocketConnection
from nightherd.engine.operations.tokens import TOKEN_VARIABLE
from nightherd.errors import UsageError, exit_code_for

CHUNK = 64 * 1024
ERROR = 400
"""Statuses from here on say what went wrong."""


@click.command("api", epilog="Example: nightherd api GET /v1/jobs?limit=5")
@click.argument("method", type=click.Choice(["GET", "POST", "DELETE"], case_sensitive=False))
@click.argument("path")
@click.option(
    "-d", "--data", metavar="JSON", help="Request body; @FILE reads a file, @- standard input."
)
@click.option(
    "-H",
    "--header",
    "headers",
    multiple=True,
    metavar="NAME:VALUE",
    help="Request header; repeat for several.",
)
@json_option
@click.pass_context
def api(
    ctx: click.Context, method: str, path: str, data: str | None, headers: tuple[str, ...]
) -> None:
    """Send a request to the daemon's API. Prints the response; a stream is printed as it arrives.

    An error response ends with the exit code of that error, and 69 means that no daemon runs.
    """
    invocation = invocation_of(ctx)
    screen = invocation.screen
    with closing(SocketConnection(invocation.new_state_directory())) as connection:
        connection.request(
            method.upper(),
            path,
            body=_body(invocation, data),
            headers=_headers(invocation, headers, data),
        )
        answer = connection.getresponse()
        if answer.status >= ERROR:
            problem = answer.read()
            screen.show(problem.decode("utf-8", "replace").rstrip("\n"))
            ctx.exit(_exit_code(problem))
        text = codecs.getincrementaldecoder("utf-8")("replace")
        for chunk in _chunks(answer):
            screen.write(text.decode(chunk))


def _exit_code(problem: bytes) -> int:
    """What the error that the document names means on the command line."""
    try:
        document = json.loads(problem)
    except ValueError:
        return exit_code_for("")
    return exit_code_for(str(document.get("code")) if isinstance(document, dict) else "")


def _chunks(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    last = b"\n"
    while chunk := answer.read1(CHUNK):
        yield chunk
        last = chunk
    if not last.endswith(b"\n"):
        yield b"\n"


def _headers(invocation: Invocation, given: tuple[str, ...], data: str | None) -> dict[str, str]:
    headers = {"content-type": "application/json"} if data is not None else {}
    token = invocation.environ.get(TOKEN_VARIABLE, "").strip()
    if token:
        headers["authorization"] = f"Bearer {token}"
    for one in given:
        name, colon, value = one.partition(":")
        if not colon or not name.strip():
            raise UsageError(f"{one!r} is not a header; write NAME:VALUE")
        headers[name.strip().lower()] = value.strip()
    return headers


def _body(invocation: Invocation, data: str | None) -> bytes | None:
    if data is None or not data.startswith("@"):
        return None if data is None else data.encode()
    if data == "@-":
        return sys.stdin.buffer.read()
    return (invocation.cwd / data[1:]).read_bytes()
