"""What Discord answers, sorted: what may pass, what is refused for good, and when the bot itself is refused."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import aiohttp
import discord

from nightherd.errors import ChatRefusedError
from nightherd.ports.chat import PostResult

GUIDE = "docs/guide/discord.md"
PAUSE_WITHOUT_TIME = timedelta(seconds=30)
"""How long Discord is left alone when it asks for that without saying how long."""
LONGEST_REASON = 200
UNAUTHORIZED, TOO_MANY, SERVER_ERROR = 401, 429, 500
UNKNOWN_EMOJI, UNKNOWN_MESSAGE = 10014, 10008

FAILURES = (
    discord.DiscordException,
    aiohttp.ClientError,
    asyncio.TimeoutError,
    OSError,
    RuntimeError,  # aiohttp's, for a session that was closed
)
"""What a request can fail with."""

UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)
"""What discord.py raises where Discord sends something that it does not know."""

_ADVICE = {
    10003: "there is no channel with that id, or the bot cannot see it",
    UNKNOWN_MESSAGE: "the message was deleted",
    30046: "the message was edited too often",
    40005: "the file is too large for the server",
    50001: "let the bot see the channel",
    50007: "the person does not take direct messages from the bot",
    50013: f"the bot lacks a permission in the channel ({GUIDE})",
    50083: "the thread is archived",
    160005: "the thread is locked",
}
_WHY_REFUSED = {
    4004: "the token is not valid any more",
    4010: "the bot has to be sharded, which nightherd does not do",
    4011: "the bot is in so many servers that it has to be sharded, which nightherd does not do",
    4012: "the version of the gateway is not supported any more: update discord.py",
    4013: "the intents are not valid: update discord.py",
}
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


def failure(error: BaseException) -> PostResult:
    """Return what a failed request means for a post. Nothing is lost for good while only the token is refused."""
    if isinstance(error, discord.RateLimited):
        return PostResult(error=reason(error), retry_after=timedelta(seconds=error.retry_after))
    if isinstance(error, discord.HTTPException):
        if error.status == TOO_MANY:
            return PostResult(error=reason(error), retry_after=_pause(error))
        is_passing = error.status >= SERVER_ERROR or error.status == UNAUTHORIZED
        return PostResult(
            error=reason(error),
            is_permanent=not is_passing,
            is_uncertain=error.status >= SERVER_ERROR,
        )
    # A closed session sends nothing.
    is_sent = not isinstance(error, (*_NOT_SENT, RuntimeError))
    return PostResult(error=reason(error), is_uncertain=is_sent)


def reason(error: BaseException) -> str:
    """Return why a request failed, for people. It has no address and no token in it."""
    match error:
        case discord.RateLimited():
            return f"Discord: too many requests; it asks for {error.retry_after:.0f} s"
        case discord.HTTPException():
            text = " ".join(error.text.split())[:LONGEST_REASON]
            advice = _ADVICE.get(error.code)
            more = f" ({advice})" if advice is not None else ""
            return f"Discord: {error.status} {text}".rstrip() + more
        case discord.ConnectionClosed():
            return f"Discord closed the connection ({error.code})"
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            return "Discord's certificate is not trusted here"
        case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
            return "Discord cannot be reached"
        case asyncio.TimeoutError():
            return "Discord did not answer in time"
        case RuntimeError():
            return "Discord: not connected"
        case AttributeError() | LookupError() | TypeError() | ValueError():
            return f"discord.py cannot read what Discord sent ({type(error).__name__}); update it"
        case _:
            return f"the connection to Discord was lost before it answered ({type(error).__name__})"


def refusal(error: BaseException, variable: str) -> ChatRefusedError | None:
    """Return the error of a bot that Discord refuses for good; None when it may be taken later.

    `variable` holds the bot's token.
    """
    token_hint = f"make a new token in the developer portal and set {variable} to it ({GUIDE})"
    match error:
        case discord.LoginFailure():
            return ChatRefusedError("Discord refuses the bot's token", hint=token_hint)
        case discord.HTTPException(status=401):
            return ChatRefusedError("Discord refuses the bot's token", hint=token_hint)
        case discord.PrivilegedIntentsRequired():
            return ChatRefusedError(
                "Discord does not let the bot read messages: its Message Content Intent is off",
                hint=f"switch it on in the developer portal, under Bot ({GUIDE}), and restart the bot",
            )
        case discord.ConnectionClosed(code=code) if code in _WHY_REFUSED:
            hint = token_hint if code == 4004 else f"see {GUIDE}"
            return ChatRefusedError(
                f"Discord refuses the bot ({code}): {_WHY_REFUSED[code]}", hint=hint
            )
        case _:
            return None


def _pause(error: discord.HTTPException) -> timedelta:
    said = error.response.headers.get("Retry-After", "")
    if not said.isdecimal() or len(said) > 7:
        return PAUSE_WITHOUT_TIME
    return timedelta(seconds=max(int(said), 1))
