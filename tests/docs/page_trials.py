"""The command as a page shows it, in a fork of a process that has everything imported."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from nightherd.cli.main import main
from nightherd.testing.fork_process import Say

COMMAND = f"{__name__}:command"


def command(order: dict[str, Any], say: Say) -> None:
    """Run `arguments` in `folder` with exactly `environment`; all that is printed goes to the file `shown`.

    With `loaded`, the names of the modules that it took are left there.
    """
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    shown = os.open(order["shown"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    os.dup2(shown, 1)
    os.dup2(shown, 2)
    # As for a process of its own: what goes to a file or a pipe is shown when there is much, errors by lines.
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    code = main(order["arguments"])
    sys.stdout.flush()
    sys.stderr.flush()
    if "loaded" in order:
        Path(order["loaded"]).write_text("\n".join(sys.modules))
    os._exit(code)
