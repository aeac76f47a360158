"""Reading a journal far larger than the memory it may take, in a process whose memory is measured."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nightherd.journal.files import JournalFiles
from nightherd.model.agents.agent import Durability
from nightherd.testing.contracts.journal import JOB, begin
from nightherd.testing.contracts.journal import say as event_of
from nightherd.testing.determinism import FakeClock
from nightherd.testing.fork_process import Say

MEASURE = f"{__name__}:measure"


def journals_at(folder: Path) -> JournalFiles:
    return JournalFiles(folder, folder / "blobs", clock=FakeClock(), durability=Durability.PROCESS)


def fill(path: Path, size: int, line_size: int = 4_000) -> int:
    """A journal of about `size` bytes, one message a line; how many lines."""
    count = size // line_size
    text = "x" * (line_size - 120)
    with path.open("wb", 1 << 20) as file:
        for seq in range(1, count + 1):
            head = f'{{"type":"assistant","v":1,"seq":{seq},"epoch":1,"message":{seq},"end":true'
            file.write(f'{head},"content":"{text}"}}\n'.encode())
    return count


def measure(order: dict[str, Any], say: Say) -> None:
    """Do each thing a reader or writer does, and say by how many KiB the process has grown since it began."""
    journals, count = journals_at(Path(order["folder"])), int(order["count"])
    acts: dict[str, Callable[[], bool]] = {
        "last": lambda: journals.last(JOB, 50)[-1].seq == count,
        "message": lambda: journals.seq_of_message(JOB, count // 2) == count // 2,
        "after": lambda: next(journals.read(JOB, after=count // 3)).seq == count // 3 + 1,
        "read": lambda: sum(1 for _ in journals.read(JOB)) == count,
        "follow": lambda: sum(1 for _ in journals.follow(JOB, wait=_at_once)) == count,
        "examine": lambda: journals.examine(JOB).events == count,
        "append": lambda: begin(journals, epoch=2).append(event_of("one more")).seq == count + 1,
    }
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name, act in acts.items():
        assert act(), name
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        say(f"{name} {grown}")


def _at_once(timeout: float, /) -> bool:
    return True
