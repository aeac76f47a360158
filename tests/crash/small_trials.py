"""Trials with little to them: for the tests of the fork server itself."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say


def speak(order: Any, say: Say) -> None:
    """Say every word."""
    for word in order:
        say(word)


def die(order: Any, say: Say) -> None:
    """Come to each point, having said so; end where told."""
    probe = Ending(order["point"], nth=order["nth"])
    for point in order["points"]:
        say(point)
        probe(point)


def stop(order: Any, say: Say) -> None:
    """Stop, and go on when told."""
    say("before")
    os.kill(os.getpid(), signal.SIGSTOP)
    say("after")


def wait_for_ever(order: Any, say: Say) -> None:
    """Never end by itself."""
    say("waiting")
    threading.Event().wait()


def look_for(order: Any, say: Say) -> None:
    """Say whether the module is there without an import."""
    say(str(order in sys.modules))


def fail(order: Any, say: Say) -> None:
    """Raise."""
    say("going to fail")
    raise ValueError(order)
