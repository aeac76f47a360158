"""How long a native job's conversation takes to be back, in a process that has done nothing else, as peers are asked.

Arguments: the state directory and the job. Prints the least processor milliseconds.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from nightherd.model.ids import JobId
from nightherd.model.secrets import find_secrets
from nightherd.runtimes.native.conversation import recall
from nightherd.wiring import stores as memories

LOADS = 15


def load(root: Path, job: JobId) -> float:
    """The conversation as a new process would get it, as the objects that go to a model; seconds of the processor."""
    journals, secrets = memories.open_journals(root), find_secrets({})
    begun = time.process_time()
    recall(journals.read(job), secrets)
    return time.process_time() - begun


def main() -> None:
    root, job = Path(sys.argv[1]), JobId(sys.argv[2])
    print(min(load(root, job) for _ in range(LOADS)) * 1e3)


if __name__ == "__main__":
    main()
