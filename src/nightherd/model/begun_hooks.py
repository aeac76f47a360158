"""Begun hooks: what a job's journal says of the hooks that were begun for one end of it, or one wait."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nightherd.model.event import Event, SystemEvent, ToolResultEvent, is_message, payload_of
from nightherd.model.hook import HookEvent
from nightherd.model.repeat import is_interrupted_call
from nightherd.model.system import HookRan, SystemSubtype


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A hook that was begun for one end of a job."""

    ran: HookRan
    """As last recorded."""
    epoch: int
    """Of the execution that began it first."""


def remembered(events: Iterable[Event], event: HookEvent) -> dict[str, Remembered]:
    """The hooks that were begun for this end of the job, by their ids.

    A job ends once, so whatever its journal says counts; it may wait any number of times, and is in another
    wait once it has gone on, or has said something.
    """
    begun: dict[str, Remembered] = {}
    is_waiting = False
    for one in events:
        if event is HookEvent.SUSPENDED and (_says(one) or (is_waiting and _goes_on(one))):
            begun.clear()
            is_waiting = False
        if not isinstance(one, SystemEvent):
            continue
        is_waiting = is_waiting or one.subtype is SystemSubtype.SUSPENDED
        ran = payload_of(one) if one.subtype is SystemSubtype.HOOK else None
        is_wait = isinstance(ran, HookRan) and ran.event == HookEvent.SUSPENDED
        if isinstance(ran, HookRan) and ran.id and is_wait is (event is HookEvent.SUSPENDED):
            first = begun.get(ran.id)
            begun[ran.id] = Remembered(ran=ran, epoch=first.epoch if first else one.epoch)
    return begun


def _says(event: Event) -> bool:
    """Whether it is something said; that a call was cut off is told of a job that is where it was."""
    is_cut_off = isinstance(event, ToolResultEvent) and is_interrupted_call(event.error)
    return is_message(event) and not is_cut_off


def _goes_on(event: Event) -> bool:
    return isinstance(event, SystemEvent) and event.subtype is SystemSubtype.RESUMED
