"""The engine that a command means, and how what is known about an image is shown."""

from __future__ import annotations

from typing import Any

from nightherd.cli.fleet.load import load_all
from nightherd.cli.invocation import Invocation
from nightherd.cli.screen.render import Screen, neutralise
from nightherd.engine.doctor.night_checks import container_agents
from nightherd.errors import ConfigError, UsageError
from nightherd.model.containers.image import ImageReport, Requirement

MET, MISSING, OPTIONAL = "✔", "✗", "!"


def configured_socket(invocation: Invocation) -> str | None:
    """Return the socket that the fleet file names; None without one. Images do not need a fleet."""
    try:
        sockets = [
            one for one in container_agents(load_all(invocation).fleet.agents.values()) if one
        ]
    except ConfigError:
        return None
    if len(sockets) > 1:
        raise UsageError(
            f"the agents of this fleet use several engines: {', '.join(sockets)}",
            hint="set DOCKER_HOST, and run the command outside the fleet's directory",
        )
    return sockets[0] if sockets else None


def report_document(report: ImageReport) -> dict[str, Any]:
    """Return the report as programs read it."""
    return {
        "image": report.image,
        "image_id": report.image_id,
        "size_bytes": report.size_bytes,
        "is_usable": report.is_usable,
        "skew": report.skew,
        "requirements": [
            {
                "name": one.name,
                "is_met": one.is_met,
                "is_required": one.is_required,
                "found": one.found,
                "note": one.note,
            }
            for one in report.requirements
        ],
    }


def show_report(screen: Screen, report: ImageReport) -> None:
    """Show what the image needs and has, one line each."""
    for one in report.requirements:
        text = one.found or "missing"
        note = f": {one.note}" if one.note else ""
        screen.show(neutralise(f"{_mark(one)} {one.name.ljust(12)} {text}{note}"))
    if report.skew is not None:
        screen.show(neutralise(f"{OPTIONAL} {report.skew}"))


def _mark(requirement: Requirement) -> str:
    if requirement.is_met:
        return MET
    return MISSING if requirement.is_required else OPTIONAL
