"""Those who send notifications."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightherd.wiring.stores import open_feed, system_clock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nightherd.engine.contexts import WorkerContext
    from nightherd.engine.notifications.notifier import Notifier
    from nightherd.model.agents.agent import Fleet
    from nightherd.next_step import SpellStep
    from nightherd.ports import Sender


def open_sender(environ: Mapping[str, str]) -> Sender:
    """What sends messages from this machine."""
    from nightherd.runtimes.notify.sender import ChildSender

    return ChildSender(system_clock(), environ)


def why_not_sent() -> str | None:
    """Why no notification can be sent here; None when they can."""
    from nightherd.runtimes.notify.sender import NEEDS, can_send

    return None if can_send() else NEEDS


def make_notifier(
    state_dir: Path,
    fleet: Fleet,
    context: WorkerContext,
    environ: Mapping[str, str],
    spell: SpellStep,
    *,
    is_whole: bool = True,
) -> Notifier:
    """The notifier of the process whose worker has `context`; `spell` writes commands for people."""
    from nightherd.engine.notifications.context import NotifyContext
    from nightherd.engine.notifications.notifier import Notifier
    from nightherd.state.layout import last_recorded

    return Notifier(
        fleet,
        NotifyContext(
            state=context.state,
            reader=context.reader,
            journals=context.journals,
            feed=open_feed(state_dir),
            ledger_end=lambda: last_recorded(state_dir / "ledger"),
            clock=context.clock,
            sender=open_sender(environ),
            spell=spell,
            by=context.worker,
            random_text=context.random_text,
            environment=context.environment,
            secrets=context.secrets,
            log=context.log,
            is_whole=is_whole,
        ),
    )
