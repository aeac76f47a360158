"""Session commands that are killed at a named point: what the fork server runs."""

from __future__ import annotations

import os
from typing import Any

from nightherd import ports
from nightherd.cli.main import main
from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say


def command(order: dict[str, Any], say: Say) -> None:
    """Run a command line in a directory, until the point is reached for the n-th time.

    This process is for nothing else: the probe that production passes is replaced where it is looked up.
    """
    os.chdir(order["directory"])
    # Not a test's patch: there is nobody after this in the process.
    setattr(ports, "no_probe", Ending(order["point"], nth=order["nth"]))  # noqa: B010
    say(str(main(order["words"])))
