"""A real store with its ledger, a notifier on it, and a sender that only records."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from msgspec.structs import replace

from engine.bench import AGENT
from nightherd.cli.next_steps import command_for
from nightherd.engine.notifications.context import NotifyContext
from nightherd.engine.notifications.deliver import deliver
from nightherd.engine.notifications.notifier import Notifier
from nightherd.journal.files import JournalFiles
from nightherd.model.access.web import Web
from nightherd.model.agents.agent import Fleet
from nightherd.model.change import Applied, Change
from nightherd.model.inbox.changes import AskPerson
from nightherd.model.inbox.item import (
    Asked,
    InboxItem,
    InboxTexts,
    ItemKind,
    ItemStatus,
    call_key,
    item_id,
)
from nightherd.model.notifications.notification import Notification, NotificationQuery
from nightherd.model.notifications.target import DEFAULT_EVENTS, NotifyEvent, NotifyTarget
from nightherd.ports import Probe, PushSender, Sender, no_probe
from nightherd.state.directory import init_state_directory
from nightherd.state.layout import last_recorded
from nightherd.state.outbox import LedgerFeed
from nightherd.state.reader import SqliteReader
from nightherd.state.store import SqliteStore
from nightherd.testing.determinism import CountingText, FakeClock
from nightherd.testing.recording_sender import RecordingPushSender, RecordingSender
from nightherd.testing.state_values import BEGINNING, job_id

URL = "json://hook.example/a-secret-path"
ALL_EVENTS = frozenset(NotifyEvent)
PHONE = NotifyTarget(id="phone", url=URL, events=ALL_EVENTS)
MAIL = NotifyTarget(id="mail", url_env="MAIL_URL", events=DEFAULT_EVENTS)


def fleet_of(*targets: NotifyTarget, **agent: object) -> Fleet:
    """A fleet of one agent, `grazer`, with these targets."""
    grazer = replace(AGENT, name="grazer", **agent)
    return Fleet(file="/f/nightherd.yaml", agents={"grazer": grazer}, notify=targets)


def with_links(fleet: Fleet) -> Fleet:
    """The fleet as it is reached from outside."""
    return replace(fleet, web=Web(enabled=True, public_url="https://fleet.example"))


def approval(
    number: int,
    *,
    remind_s: tuple[float, ...] = (),
    title: str = "Bash: git push",
    approvers: Sequence[str] = (),
) -> AskPerson:
    """Job `number`, which runs, asks for the approval of a call."""
    key = call_key(job_id(number), "t1")
    item = InboxItem(
        id=item_id(key),
        kind=ItemKind.APPROVAL,
        status=ItemStatus.PENDING,
        created_at=BEGINNING,
        subject=job_id(number),
        title=title,
        dedupe_key=key,
        hash="h",
        epoch=1,
        job_id=job_id(number),
        agent="grazer",
        tool="Bash",
        tool_use_id="t1",
    )
    body = {"tool": "Bash", "input": {"command": title.removeprefix("Bash: ")}}
    texts = InboxTexts(
        item_id=item.id, body=body, terms={"remind_s": list(remind_s), "approvers": list(approvers)}
    )
    return AskPerson(asked=(Asked(item=item, texts=texts),), job_id=job_id(number), epoch=1)


class Outbox:
    """One process with a notifier, which does a round when it is told to."""

    def __init__(
        self,
        root: Path,
        fleet: Fleet,
        sender: Sender,
        clock: FakeClock,
        probe: Probe,
        by: str,
        pushes: PushSender,
    ) -> None:
        self.root, self.fleet, self.clock = root, fleet, clock
        self.store, self.reader = SqliteStore(root, clock, probe), SqliteReader(root)
        self.context = NotifyContext(
            state=self.store,
            reader=self.reader,
            journals=JournalFiles(root / "jobs", root / "blobs", clock=clock),
            feed=LedgerFeed(root / "ledger"),
            ledger_end=lambda: last_recorded(root / "ledger"),
            clock=clock,
            sender=sender,
            pushes=pushes,
            spell=command_for,
            by=by,
            random_text=CountingText(),
            environment={"MAIL_URL": "json://mail.example/another-secret"},
            probe=probe,
        )
        self.notifier = Notifier(fleet, self.context)

    async def apply(self, *changes: Change) -> None:
        """Change the state; every change has to be possible."""
        for answer in await self.store.apply(changes):
            assert isinstance(answer, Applied), answer

    async def round(self) -> None:
        """Take in what is new, and deliver what is due."""
        await self.notifier.look()
        for target in self.notifier.due():
            await deliver(target, self.fleet, self.context)

    def adopt(self, fleet: Fleet) -> None:
        """The fleet file was changed."""
        self.fleet = fleet
        self.notifier.adopt(fleet, self.context.environment, self.context.secrets)

    def rows(self) -> list[Notification]:
        """Every notification, the first queued first."""
        return list(reversed(self.reader.list_notifications(NotificationQuery(limit=100))))

    async def close(self) -> None:
        """Give everything back."""
        self.reader.close()
        await self.store.close()


@asynccontextmanager
async def outbox(
    folder: Path,
    fleet: Fleet,
    sender: Sender | None = None,
    *,
    clock: FakeClock | None = None,
    probe: Probe = no_probe,
    by: str = "worker-1",
    pushes: PushSender | None = None,
) -> AsyncIterator[Outbox]:
    """Open one on the state directory in `folder`."""
    root = init_state_directory(folder / ".nightherd").root
    clock = clock or FakeClock(BEGINNING + timedelta(hours=1))
    opened = Outbox(
        root,
        fleet,
        sender or RecordingSender(),
        clock,
        probe,
        by,
        pushes or RecordingPushSender(),
    )
    try:
        yield opened
    finally:
        await opened.close()
