"""The sender that really sends and the one that only records keep the same contract."""

from __future__ import annotations

import os

import anyio
import pytest

from nightherd.host.system import SystemClock
from nightherd.ports import SendResult
from nightherd.runtimes.notify.sender import ChildSender
from nightherd.testing.contracts.sender import SENDER_CHECKS, Check, OpenSender
from nightherd.testing.recording_sender import RecordingSender
from runtimes.notify.loopback import loopback

each_check = pytest.mark.parametrize("check", SENDER_CHECKS, ids=lambda check: check.__name__)


@each_check
def test_child_process_keeps_the_contract(check: Check) -> None:
    with loopback() as server:

        def refuse() -> None:
            server.status = 503

        place = OpenSender(
            sender=ChildSender(SystemClock(), os.environ),
            url=server.url(path="/a-secret-path"),
            refuse=refuse,
            count=lambda: len(server.bodies),
        )
        anyio.run(check, place)


@each_check
def test_recording_sender_keeps_the_contract(check: Check) -> None:
    sender = RecordingSender()

    def refuse() -> None:
        sender.answer = lambda _: SendResult(error="the server answered 503")

    place = OpenSender(
        sender=sender,
        url="json://hook.example/a-secret-path",
        refuse=refuse,
        count=lambda: len(sender.outgoing),
    )
    anyio.run(check, place)
