"""`nightherd chat`: talk with an agent in the terminal, through the same core as on Slack and Discord."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import Any

import click
from anyio.from_thread import BlockingPortal, start_blocking_portal

from nightherd.cli.chat.lines import LineReader
from nightherd.cli.chat.talk import End, Said, Talk, open_talk
from nightherd.cli.chat.view import QuietView, StreamView
from nightherd.cli.fleet.load import load_fleet_with_notices
from nightherd.cli.invocation import (
    Invocation,
    complete_agents,
    complete_sessions,
    invocation_of,
    json_option,
)
from nightherd.cli.jobs.command import find_agent
from nightherd.cli.screen.render import Screen, neutralise
from nightherd.cli.sessions.options import named_session
from nightherd.errors import AgentBlockedError, NightherdError, RefusedError, message_of, unwrapped
from nightherd.model.agents.agent import Agent, Fleet
from nightherd.model.chat.terminal import channel_of, terminal_settings
from nightherd.model.sessions.session import Session, is_over
from nightherd.model.units import to_usd
from nightherd.wiring.machine import user_name
from nightherd.wiring.runtimes import check_runtime
from nightherd.wiring.stores import random_text, system_clock
from nightherd.wiring.terminal_chat import (
    HISTORY,
    OpenTerminal,
    holding_terminal,
    terminals_directory,
)

CHANNEL_LENGTH = 10
PROMPT = "> "
LEAVE = frozenset({"/exit", "/quit", "/bye"})
LEAVING = (signal.SIGTERM, signal.SIGHUP)
SIGNALLED = 128
"""Added to the number of the signal that ended the command."""
HINT = "Type a message; /help lists the commands; Ctrl-C cancels a turn; Ctrl-D leaves."


@click.command("chat", epilog="Example: nightherd chat hello")
@click.argument("agent", metavar="AGENT", shell_complete=complete_agents)
@click.option(
    "--session",
    metavar="SESSION",
    shell_complete=complete_sessions,
    help="Session to continue; @last is the newest.",
)
@json_option
@click.pass_context
def chat(ctx: click.Context, agent: str, session: str | None) -> None:
    """Talk with an agent in the terminal. Each message is a job of the daemon, or of this process where there is none.

    Reads messages line by line when its input is no terminal. Ends with exit code 1 when one of them was not answered.
    """
    invocation = invocation_of(ctx)
    screen = invocation.screen
    fleet = load_fleet_with_notices(invocation, agent=agent, is_run=True)
    found = find_agent(fleet, agent, command="nightherd chat")
    if found.blocked_by:
        raise AgentBlockedError(found.name, found.blocked_by)
    check_runtime(found.runtime.name)
    is_person = sys.stdin.isatty() and screen.is_terminal and not screen.is_json
    terminal = _terminal(invocation, found, session, is_person=is_person)
    state_dir = invocation.new_state_directory()
    with holding_terminal(state_dir, terminal.channel), _terminable():
        try:
            is_answered = _Conversation(invocation, fleet, terminal).run(is_person=is_person)
        except ExceptionGroup as group:
            raise unwrapped(group) from None
    ctx.exit(0 if is_answered else 1)


def _terminal(
    invocation: Invocation, agent: Agent, reference: str | None, *, is_person: bool
) -> OpenTerminal:
    """The conversation that is meant: a new one, or that of the session."""
    session = None if reference is None else named_session(invocation, reference)
    if session is not None:
        _check_session(session, agent)
    known = None if session is None else channel_of(session)
    channel = known or random_text()(CHANNEL_LENGTH)
    user = user_name()
    return OpenTerminal(
        settings=terminal_settings(agent, channel, user, shows_results=is_person),
        channel=channel,
        user=user,
        session_id=None if session is None else session.id,
    )


def _check_session(session: Session, agent: Agent) -> None:
    if session.agent != agent.name:
        raise RefusedError(
            f"session {session.id} is one of agent {session.agent!r}, not of {agent.name!r}",
            hint=f"nightherd chat {session.agent} --session {session.id}",
        )
    if is_over(session):
        raise RefusedError(
            f"session {session.id} is {session.status} and cannot be continued",
            hint=f"nightherd chat {agent.name}",
        )


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM, and a terminal that is closed, leave as Ctrl-D does."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(SIGNALLED + number)

    before = {number: signal.signal(number, leave) for number in LEAVING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Conversation:
    """The main thread: it reads lines, while the conversation lives in a thread of its own."""

    def __init__(self, invocation: Invocation, fleet: Fleet, terminal: OpenTerminal) -> None:
        self._invocation = invocation
        self._screen: Screen = invocation.screen
        self._fleet = fleet
        self._terminal = terminal
        self._state_dir = invocation.new_state_directory()
        self._view: StreamView | QuietView = QuietView()
        self._unanswered: set[str] = set()
        """Jobs that did not answer, or wait for a person."""
        self._has_failed = False

    def run(self, *, is_person: bool) -> bool:
        """Talk until the person leaves, or there are no more lines; whether everything was answered."""
        lines: LineReader | None = None

        def current_line() -> str | None:
            return None if lines is None else lines.current_line()

        if is_person:
            self._view = StreamView(self._screen, current_line)
        with ExitStack() as opened:
            portal = opened.enter_context(start_blocking_portal())
            talk = opened.enter_context(
                portal.wrap_async_context_manager(
                    open_talk(
                        self._terminal,
                        self._state_dir,
                        self._fleet,
                        self._invocation.environ,
                        self._view,
                        self._report,
                    )
                )
            )
            if is_person:
                history = terminals_directory(self._state_dir) / HISTORY
                lines = LineReader(history, talk.mask, PROMPT)
                self._talk_with(portal, talk, lines)
                lines.shorten_history()
            else:
                self._answer_lines(portal, talk)
            self._say_how_to_continue(talk, is_person=is_person)
        return not (self._has_failed or self._unanswered)

    def _report(self, text: str) -> None:
        self._screen.say(neutralise(text))

    def _talk_with(self, portal: BlockingPortal, talk: Talk, lines: LineReader) -> None:
        self._screen.say(self._screen.err.dim(f"{self._terminal.settings.agent}: {HINT}"))
        if not self._wait(portal, talk, talk.settled):
            return
        was_interrupted = False
        while True:
            try:
                text = lines.read().strip()
            except EOFError:
                self._screen.write("\n")
                return
            except KeyboardInterrupt:
                self._screen.write("\n")
                if was_interrupted:
                    return
                was_interrupted = True
                self._screen.say("press Ctrl-C again, or Ctrl-D, to leave")
                continue
            was_interrupted = False
            if text in LEAVE:
                return
            if text and not self._wait(portal, talk, talk.say, text):
                return

    def _wait(
        self, portal: BlockingPortal, talk: Talk, what: Callable[..., Any], *given: str
    ) -> bool:
        """Wait for an answer; Ctrl-C cancels the turn. False when the person leaves before it came."""
        future: Future[Said | None] = portal.start_task_soon(what, *given)
        is_stopped = False
        while True:
            try:
                said = future.result()
            except KeyboardInterrupt:
                if is_stopped:
                    return False
                is_stopped = True
                self._view.end()
                self._screen.say("stopping; press Ctrl-C again to leave")
                with suppress(NightherdError):
                    portal.call(talk.stop)
                continue
            except NightherdError as error:
                self._view.end()
                self._screen.say(neutralise(f"error: {error.message}"))
                return True
            self._view.end()
            if said is not None and said.note:
                self._screen.say(neutralise(said.note))
            return True

    def _answer_lines(self, portal: BlockingPortal, talk: Talk) -> None:
        """Answer each line of the input, in order."""
        for line in sys.stdin:
            text = line.strip()
            if text in LEAVE:
                return
            if not text:
                continue
            try:
                said = portal.call(talk.say, text)
            except NightherdError as error:
                said = Said(end=End.FAILED, errors=(message_of(error),))
            self._show(said, talk)

    def _show(self, said: Said, talk: Talk) -> None:
        """Write an answer that is whole."""
        if said.end not in (End.ANSWERED, End.COMMAND):
            self._has_failed = self._has_failed or said.job is None
            self._unanswered |= {said.job.id} if said.job is not None else set()
        elif said.job is not None:
            self._unanswered.discard(said.job.id)  # what waited was answered
        view = self._view
        files = view.take_files() if isinstance(view, QuietView) else []
        if self._screen.is_json:
            self._screen.document("chat", _document(said, talk, files), system_clock().now())
            return
        for text in said.texts:
            self._screen.show(neutralise(text))
        self._screen.flush()
        for file in files:
            self._screen.say(neutralise(f"file {file['name']}: {file['path']}"))
        for text in (*said.errors, *([said.note] if said.note else ())):
            self._screen.say(neutralise(text))
        if said.end is End.WAITING and said.job is not None:
            self._screen.say(f"{said.job.id} waits: nightherd inbox")
        elif said.end is End.CANCELLED:
            self._screen.say("cancelled")

    def _say_how_to_continue(self, talk: Talk, *, is_person: bool) -> None:
        session = talk.session_id
        if is_person and session is not None:
            agent = self._terminal.settings.agent
            self._screen.say(f"continue: nightherd chat {agent} --session {session}")


def _document(said: Said, talk: Talk, files: list[dict[str, str]]) -> dict[str, Any]:
    """One answer for programs."""
    job = said.job
    return {
        "status": said.end.value,
        "answer": "\n\n".join(said.texts) or None,
        "error": "\n".join(said.errors) or None,
        "note": said.note,
        "files": files,
        "job_id": None if job is None else job.id,
        "session_id": talk.session_id,
        "turns": None if job is None else job.turns,
        "cost_usd": None if job is None else to_usd(job.cost_microusd),
    }
