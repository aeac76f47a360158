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
    from nightherd.model.push.keys import PushKeys
    from nightherd.next_step import SpellStep
    from nightherd.ports import PushSender, Sender


def open_sender(environ: Mapping[str, str]) -> Sender:
    """What sends messages from this machine."""
    from nightherd.runtimes.notify.sender import ChildSender

    return ChildSender(system_clock(), environ)


def open_push_sender(state_dir: Path, environ: Mapping[str, str]) -> PushSender:
    """What sends pushes from this machine, signed with the keys in the state directory."""
    from nightherd.runtimes.notify.push_sender import ChildPushSender

    return ChildPushSender(system_clock(), environ, lambda: _ensure_push_keys(state_dir))


def make_push_keys(state_dir: Path) -> None:
    """Make the keys that sign pushes where there are none and pushes can be sent; `GET /v1/push` says what went wrong."""
    from contextlib import suppress

    from nightherd.errors import StateFileError
    from nightherd.runtimes.notify.push_sender import can_push

    if can_push():
        with suppress(StateFileError):
            _ensure_push_keys(state_dir)


def _ensure_push_keys(state_dir: Path) -> PushKeys:
    from nightherd.state.push_keys import ensure_push_keys

    def make() -> PushKeys:
        from nightherd.runtimes.notify import vapid

        return vapid.make_push_keys()

    return ensure_push_keys(state_dir, make)


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
            pushes=open_push_sender(state_dir, environ),
            spell=spell,
            by=context.worker,
            random_text=context.random_text,
            environment=context.environment,
            secrets=context.secrets,
            log=context.log,
            is_whole=is_whole,
        ),
    )
