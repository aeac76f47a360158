"""The command in a process of its own, forked from one that has everything imported: a tenth of a fresh start.

For tests that run many commands and are not about how one starts. It gets exactly the environment it is given,
its output goes to files, and its input is empty.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from nightherd.cli.main import main
from nightherd.testing.fork_process import Say
from nightherd.testing.fork_server import ForkServer
from surfaces.drivers import Result, Shell

PATIENCE_S = 120.0
OUT, ERR, LOADED = "out", "err", "loaded"
NEVER_LOADED = {"__main__", "__mp_main__"}


def run(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], *, is_mixed: bool = False
) -> subprocess.CompletedProcess[str]:
    """What `nightherd WORDS` came to in the folder; errors are among the output where `is_mixed`."""
    with tempfile.TemporaryDirectory(prefix="command-") as files:
        order = {
            "words": list(words),
            "folder": str(folder),
            "environment": dict(environment),
            "files": files,
            "is_mixed": is_mixed,
        }
        ended = _server().run(f"{__name__}:command", order)
        texts = {path.name: path.read_text() for path in Path(files).iterdir()}
    _learn(texts.get(LOADED, "").split())
    return subprocess.CompletedProcess(
        list(words), ended.status, texts[OUT], texts.get(ERR, "") + ended.error
    )


class WarmShell(Shell):
    """The command as a process of its own, forked. What it starts, such as a daemon, is a fresh process."""

    def run(self, *arguments: str, stdin: bytes = b"", **environ: str) -> Result:
        """Run it to its end; its input is empty."""
        assert not stdin, "a forked command reads nothing"
        done = run(arguments, self.directory, {**os.environ, **environ})
        return Result(done.returncode, done.stdout, done.stderr)


def command(order: dict[str, Any], say: Say) -> None:
    """The forked process: runs the words, and leaves what it printed and which modules it took."""
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    files = Path(order["files"])
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    os.dup2(os.open(files / OUT, flags, 0o600), 1)
    os.dup2(1 if order["is_mixed"] else os.open(files / ERR, flags, 0o600), 2)
    # As Python does it: what is no terminal is written when there is enough of it, errors line by line.
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    code = main(order["words"])
    sys.stdout.flush()
    sys.stderr.flush()
    (files / LOADED).write_text("\n".join(sys.modules))
    os._exit(code)


@cache
def _server() -> ForkServer:
    """One for all tests of this process; it ends with it."""
    server = ForkServer(patience_s=PATIENCE_S)
    atexit.register(server.close)
    server.load("built_models")
    return server


@cache
def _known() -> set[str]:
    return set(NEVER_LOADED)


def _learn(names: Sequence[str]) -> None:
    """What one command had to import, the next one need not."""
    known = _known()
    new = [name for name in names if name not in known]
    if new:
        _server().load(*new)
        known.update(new)
