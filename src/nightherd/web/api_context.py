"""What the API needs, made once by the server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated

from anyio import CapacityLimiter
from fastapi import Depends, Request

from nightherd.config.current import CurrentConfig
from nightherd.config.report import shown_file
from nightherd.engine.contexts import WorkerContext
from nightherd.errors import RefusedError
from nightherd.files.paths import directory_identity
from nightherd.model.access.browser_session import BrowserSession
from nightherd.model.agents.agent import Fleet
from nightherd.model.chat.platform import BotId
from nightherd.model.inbox.token import Token
from nightherd.ports import (
    ChangeFeed,
    Costs,
    Landing,
    Outlines,
    PushSender,
    Searches,
    SnapshotReader,
)
from nightherd.ports.chat import TakesRequests
from nightherd.views.fleet.status import DaemonRow
from nightherd.views.streams.rows import StreamRows
from nightherd.web.access.login_codes import FailedLogins, LoginCodes
from nightherd.web.counters import Counters
from nightherd.web.health.doctor_process import Diagnosis, run_doctor
from nightherd.web.health.examiner import Examiner
from nightherd.web.read_in_thread import UNTIL, ReadInThread, is_past
from nightherd.web.streams.change_tail import ChangeTail
from nightherd.web.streams.tails import Tails
from nightherd.wiring.fleets import open_config
from nightherd.wiring.index import open_costs, open_outlines, open_search
from nightherd.wiring.machine import boot_id, is_at_work
from nightherd.wiring.notifications import open_push_sender
from nightherd.wiring.running import rescuer
from nightherd.wiring.stores import ledger_end, open_feed, open_journals, open_reader, system_clock
from nightherd.wiring.workspaces import open_landing, open_snapshot_reader

RUN_READERS = 4
LOG_READERS = 2
PUSH_TRIALS = 2


def _ignore_notice(trouble: str) -> None:
    """Ignore a notice."""


def _nothing() -> None:
    """Do nothing: there is no worker in this process."""


def _no_bot(bot: BotId) -> None:
    """No bot runs in this process."""


def _nobody(now: datetime) -> None:
    """No daemon serves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiContext:
    """Everything the API needs from the world."""

    state_dir: Path
    fleet: Callable[[], Fleet]
    """The fleet as it is configured now: a reload changes it."""
    bench: Callable[[], WorkerContext]
    """The context as that fleet has it."""
    ask: ReadInThread
    tails: Tails
    environ: Mapping[str, str]
    rescue: Callable[[], Awaitable[object]]
    counters: Counters = field(default_factory=Counters)
    report: Callable[[str], None] = _ignore_notice
    """Called with notices for the operator."""
    daemon: Callable[[datetime], DaemonRow | None] = _nobody
    """The process that serves, as `status` shows it."""
    directory: str = ""
    """The identity of the state directory."""
    wake: Callable[[], None] = _nothing
    """Called when a worker in this process may have something to do at once."""
    reload: Callable[[], None] = _nothing
    """Called when a person accepted what the fleet's files give agents."""
    bot_requests: Callable[[BotId], TakesRequests | None] = _no_bot
    """The connection of a bot that is reached by requests, while the bot runs here."""
    snapshots: SnapshotReader
    """Compares snapshots of workspaces."""
    landing: Landing
    """Brings the changes of jobs to the user's files, branches and remotes."""
    outlines: Outlines
    """The outlines of jobs."""
    searches: Searches
    """Full-text search over all jobs."""
    costs: Costs
    """What jobs have used."""
    pushes: PushSender
    """Sends pushes to devices."""
    ledger_end: Callable[[], int]
    """The number of the ledger's last change; cheap."""
    push_trials: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(PUSH_TRIALS))
    """How many try their devices at the same time."""
    changes: ChangeTail
    """What changes, for all who follow the fleet."""
    config: CurrentConfig
    """What the fleet's files say now."""
    open_feed: Callable[[], ChangeFeed]
    """Opens the ledger for one who follows a run."""
    run_readers: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(RUN_READERS))
    """How many look for events of runs at the same time."""

    examiner: Examiner
    """Runs the doctor, one at a time."""
    retention: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(1))
    """How many plan or apply retention at the same time."""
    imports: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(1))
    """How many files of sessions come in at the same time."""
    log_readers: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(LOG_READERS))

    login_codes: LoginCodes = field(default_factory=LoginCodes)
    failed_logins: FailedLogins = field(default_factory=FailedLogins)
    ports: list[int] = field(default_factory=list)
    """The ports that are listened on, that of the API first; filled when the server begins."""

    @property
    def context(self) -> WorkerContext:
        """What a request that begins now works with."""
        return self.bench()

    async def find_token(self, hash: str) -> Token | None:
        """The token with that hash that is accepted."""
        token = await self.ask(lambda reader: reader.find_token(hash))
        if token is not None:
            self.counters.tokens_used[hash] = self.now()
        return token

    async def find_browser_session(self, hash: str) -> BrowserSession | None:
        """The browser session whose cookie has that hash."""
        return await self.ask(lambda reader: reader.find_browser_session(hash))

    def now(self) -> datetime:
        """The time."""
        return self.context.clock.now()

    def show_file(self, file: str) -> str:
        """A file's name relative to the directory of the fleet file where it is below it, else in full."""
        return shown_file(file, Path(self.fleet().file).parent)

    def secrets_of(self, variable: str | None) -> list[str]:
        """The secrets in a variable: several stand apart by spaces, while one replaces another."""
        if variable is None:
            return []
        return {**self.fleet().environment, **self.environ}.get(variable, "").split()


@asynccontextmanager
async def open_api_context(  # noqa: PLR0913 (what the process that serves gives)
    state_dir: Path,
    fleet: Callable[[], Fleet],
    bench: Callable[[], WorkerContext],
    environ: Mapping[str, str],
    report: Callable[[str], None] = _ignore_notice,
    daemon: Callable[[datetime], DaemonRow | None] = _nobody,
    wake: Callable[[], None] = _nothing,
    reload: Callable[[], None] = _nothing,
    bot_requests: Callable[[BotId], TakesRequests | None] = _no_bot,
) -> AsyncIterator[ApiContext]:
    """A site on `state_dir`; what it opened is closed when the context ends."""
    ask = ReadInThread(partial(open_reader, state_dir))

    async def rescue() -> object:
        return await rescuer(bench(), fleet())()

    async def examine(is_deep: bool) -> Diagnosis:
        return await run_doctor(Path(fleet().file), state_dir, environ, is_deep=is_deep)

    feed, journals = partial(open_feed, state_dir), open_journals(state_dir)
    rows = StreamRows(fleet, journals, is_at_work, system_clock().now)
    async with (
        Tails(journals, ask, system_clock()) as tails,
        Examiner(examine, system_clock().now) as examiner,
        ChangeTail(feed, partial(ledger_end, state_dir), rows, ask) as changes,
    ):
        try:
            yield ApiContext(
                state_dir=state_dir,
                fleet=fleet,
                bench=bench,
                ask=ask,
                tails=tails,
                environ=environ,
                rescue=rescue,
                report=report,
                daemon=daemon,
                directory=directory_identity(state_dir),
                wake=wake,
                reload=reload,
                bot_requests=bot_requests,
                snapshots=open_snapshot_reader(state_dir),
                landing=open_landing(state_dir),
                outlines=open_outlines(state_dir),
                searches=open_search(state_dir, report),
                costs=open_costs(state_dir, report),
                pushes=open_push_sender(state_dir, environ),
                ledger_end=partial(ledger_end, state_dir),
                changes=changes,
                config=open_config(fleet(), environ, state_dir),
                open_feed=feed,
                examiner=examiner,
            )
        finally:
            ask.close()


def context_of(request: Request) -> ApiContext:
    """The site that the request came to. `RefusedError` for one that its sender has given up by now."""
    site = request.app.state.site
    assert isinstance(site, ApiContext)  # noqa: S101 (put there when the app was made)
    until = request.headers.get(UNTIL)
    if until is not None and is_past(until, boot_id(), site.context.clock.monotonic()):
        raise RefusedError("the request is too old; the client has stopped waiting for it")
    return site


OnSite = Annotated[ApiContext, Depends(context_of)]
"""What an endpoint asks for."""
