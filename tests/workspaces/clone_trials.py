"""Trials that clone or fetch, in processes of their own that may be killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from nightherd.testing.ending import Ending
from nightherd.testing.fork_process import Say
from nightherd.workspaces.clones import clone_or_fetch
from workspaces.upstream import Upstream, terms_of


def clone(order: Any, say: Say) -> None:
    """Clone or fetch; end at the point that the order names, if it does."""
    upstream = Upstream(Path(order["folder"]), terms_of(order["url"]))
    probe = Ending(order["point"]) if order.get("point") else None
    tools = upstream.tools() if probe is None else replace(upstream.tools(), probe=probe)
    terms = replace(upstream.terms, depth=order.get("depth", 1))
    for note in clone_or_fetch(tools, terms, str(upstream.root)):
        say(note)
