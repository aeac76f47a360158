"""Launching a keeper: a bare interpreter, a few descriptors, and nothing secret in its arguments."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from nightherd.runtimes.keeper.census import KEEPER

PACKAGES = str(Path(__file__).parents[3])
"""Where the keeper finds its modules."""
BOOT = """
import sys
name, place = "", sys.argv[1]
for part in ("nightherd", "runtimes", "keeper"):
    name, place = (name + "." + part).lstrip("."), place + "/" + part
    package = sys.modules[name] = type(sys)(name)
    package.__path__ = [place]
from nightherd.runtimes.keeper.guard import main
"""
"""Gives the keeper empty packages to find its modules in: the real ones may load whatever they need."""
LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""All that an interpreter may need of the worker's environment; its secrets are not among it."""
FIRST_FREE = 10
"""Descriptors from here on are not overwritten while those of the keeper are put in place."""
RESTORED = (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM, signal.SIGCHLD)


def launch(marks: Mapping[str, str], descriptors: Sequence[int]) -> int:
    """The pid of a keeper that has `descriptors` as its 0, 1, 2, and so on; they stay ours to close."""
    environment = {name: os.environ[name] for name in LOADER if name in os.environ}
    keeper, _, itself = KEEPER.decode().partition("=")
    raised = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE) for one in descriptors]
    try:
        return os.posix_spawn(
            sys.executable,
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                BOOT + "main()",
                PACKAGES,
                str(os.getpid()),
                str(len(raised)),
            ],
            {**environment, **marks, keeper: itself},
            file_actions=[(os.POSIX_SPAWN_DUP2, one, at) for at, one in enumerate(raised)],
            setsigmask=(),
            setsigdef=RESTORED,
        )
    finally:
        for one in raised:
            os.close(one)
