"""The command, killed at a given place between asking a person and running the call; for `test_approval_kills.py`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

import msgspec

from nightherd.cli.main import main
from nightherd.engine.jobs.runner import JobRunner
from nightherd.engine.limits.guard import Stop
from nightherd.errors import StateError
from nightherd.model.inbox.review import ProposedCall
from nightherd.model.jobs.job import Job
from nightherd.runtimes.claude.gate import GatedCall, Message
from nightherd.runtimes.claude.review import CallReview
from nightherd.runtimes.keeper.census import Census
from runtimes.claude.approval_places import Order, Victim


def kill(order: Order) -> None:
    """Kill whom the order names, at once."""
    if order.victim is not Victim.WORKER:
        home = f"HOME={os.environ['HOME']}".encode()
        for pid in Census(marks=frozenset({home})).find():
            with suppress(OSError):  # it has ended by itself
                command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if command[1:2] == [b"-p"]:
                    os.kill(pid, signal.SIGKILL)
    if order.victim is not Victim.CLAUDE:
        os.kill(os.getpid(), signal.SIGKILL)


def arm(order: Order) -> None:
    """Have this process reach its place."""
    review, settle = CallReview._reviewed, JobRunner._settle

    left = [order]

    def reach(place: str) -> None:
        if place == order.place and left:
            kill(left.pop())

    async def reviewed(self: CallReview, proposed: ProposedCall, asked: GatedCall) -> Message:
        reach("asked")
        answer = await review(self, proposed, asked)
        reach("decided")
        if order.place == "answered" and left:
            threading.Timer(order.after_s, kill, [left.pop()]).start()
        return answer

    async def settled(self: JobRunner, stop: Stop, failure: StateError | None) -> Job:
        reach("settling")
        return await settle(self, stop, failure)

    setattr(CallReview, "_reviewed", reviewed)  # noqa: B010
    setattr(JobRunner, "_settle", settled)  # noqa: B010


if __name__ == "__main__":
    Path("worker.pid").write_text(str(os.getpid()))
    arm(msgspec.json.decode(sys.argv[1], type=Order))
    sys.argv = ["nightherd", *sys.argv[2:]]
    main()
