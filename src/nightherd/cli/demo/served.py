"""`nightherd demo --web`: the same acts while a daemon serves the dashboard, which stays open afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from nightherd.cli.demo.dashboard import (
    LINK_WORKS,
    LOGIN_S,
    DashboardDaemon,
    ending_on_signals,
    free_port,
)
from nightherd.cli.demo.demo import act, demo_environment, prepare
from nightherd.cli.screen.render import Screen


def play_served(
    screen: Screen,
    place: Path,
    environ: Mapping[str, str],
    *,
    is_kept: bool,
    span: timedelta | None,
) -> None:
    """Start the daemon, let a person log in, run the jobs, and keep the dashboard open for `span` or until Ctrl-C."""
    demo, can_fork = prepare(screen, place, demo_environment(environ), port=free_port())
    daemon = DashboardDaemon(place, demo.environ)
    demo = replace(demo, workers=daemon)
    with ending_on_signals():
        try:
            daemon.start()
            link = daemon.link()
            demo.head("nightherd start, and the dashboard")
            demo.show(link.partition("#")[0])
            demo.show(f"log in: {link}    ({LINK_WORKS})")
            if screen.is_terminal:
                demo.show(f"open it now; the demo begins when you do, or in {LOGIN_S:.0f} seconds")
                daemon.wait_for_login()
            act(demo, can_fork=can_fork, is_kept=is_kept)
            daemon.start()
            link = daemon.link()
            demo.head("The dashboard stays open until Ctrl-C")
            demo.show(link.partition("#")[0])
            demo.show(f"log in: {link}    ({LINK_WORKS})")
            demo.show(f"another link: nightherd --state-dir {demo.state_dir} open --print")
            daemon.stay(span)
        finally:
            daemon.stop()
