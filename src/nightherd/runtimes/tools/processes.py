"""Stopping what tools have started; see `nightherd.runtimes.keeper.ending`, where it is done."""

from __future__ import annotations

from nightherd.runtimes.keeper.ending import stop_processes

__all__ = ["stop_processes"]
