"""Every action that an error suggests has a command, and the API's requests exist."""

from __future__ import annotations

import click
import pytest
from fastapi.routing import APIRoute

from nightherd.cli.main import nightherd
from nightherd.cli.next_steps import COMMANDS, advice_for, command_for
from nightherd.errors import JobNotFoundError, RefusedError
from nightherd.next_step import Action, NextStep
from nightherd.web.problem import REQUESTS, request_for
from nightherd.web.server import ROOMS


@pytest.mark.parametrize("action", Action)
def test_every_action_has_a_command_that_exists(action: Action) -> None:
    name, *words = COMMANDS[action].split()
    assert name == "nightherd"
    command: click.Command = nightherd
    for word in words:
        if not isinstance(command, click.Group):
            break
        below = command.get_command(click.Context(command), word.rstrip(","))
        assert below is not None, f"{COMMANDS[action]}: there is no {word}"
        command = below


def test_command_names_what_the_step_is_about_and_leaves_the_rest_to_fill_in() -> None:
    step = NextStep(Action.RUN_IN_SESSION, session="sess-a1b2c3d4")

    assert command_for(step) == "nightherd run AGENT --resume sess-a1b2c3d4"


def test_advice_is_the_hint_and_the_command() -> None:
    step = NextStep(Action.SHOW_JOB, job="job-1")

    assert advice_for(RefusedError("no", hint="wait")) == "wait"
    assert advice_for(RefusedError("no", next_step=step)) == "nightherd jobs show job-1"
    both = RefusedError("no", hint="wait", next_step=step)
    assert advice_for(both) == "wait: nightherd jobs show job-1"
    choice = RefusedError("no", next_step=step, alternatives=[NextStep(Action.CANCEL_JOB)])
    assert advice_for(choice) == "nightherd jobs show job-1; or: nightherd jobs cancel JOB"
    assert advice_for(JobNotFoundError("no")) == "nightherd jobs"
    assert advice_for(RefusedError("no")) is None


def test_every_request_that_a_problem_suggests_is_a_route() -> None:
    routes = {
        f"{method} {route.path}"
        for room in ROOMS
        for route in room.router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }

    for action in REQUESTS:
        request = request_for(NextStep(action))
        assert " ".join(request.split()[:2]) in routes
