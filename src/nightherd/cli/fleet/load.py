"""The fleet as commands need it: loaded, without what waits for a person, and with what has to be said about it told."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio

from nightherd.cli.invocation import Invocation
from nightherd.cli.next_steps import ACCEPT, advice_for
from nightherd.cli.screen.render import neutralise
from nightherd.config.acceptance import Admission
from nightherd.config.load import LoadedFleet
from nightherd.config.report import problem_data, render_problems, shown_file
from nightherd.errors import InvalidValueError, NightherdError, RefusedError
from nightherd.model.agents.agent import Fleet, get_agent
from nightherd.model.agents.runtime import RuntimeName
from nightherd.model.permissions.widening import Widening
from nightherd.model.problem import Problem, Severity
from nightherd.wiring.fleets import load_fleet
from nightherd.wiring.machine import agent_above_here
from nightherd.wiring.reloads import admit_answered, ask_about, held_by
from nightherd.wiring.runtimes import check_runtime
from nightherd.wiring.stores import system_clock

TOLD = 20
"""How many notices are shown before a fleet starts."""
NAMED = 5
"""How many agents are named of those that cannot be run."""


def load_fleet_with_notices(
    invocation: Invocation,
    *,
    agent: str | None = None,
    is_quiet: bool = False,
    is_run: bool = False,
    accepts: bool = True,
) -> Fleet:
    """The fleet; shows one line for each setting of `agent` or the fleet that is not active yet.

    The other agents are `config check`'s matter: a large fleet would drown the one that runs. Without an
    `agent`, only what is about the fleet itself. `is_run`: agents are run with it, so what nobody has accepted
    is left out; without `accepts` also for a person at a terminal.
    """
    loaded = load_all(invocation)
    for notice in () if is_quiet else loaded.notices:
        if concerns(notice, agent):
            invocation.screen.say(notice_text(notice, invocation.cwd))
    if not is_run:
        return loaded.fleet
    return admitted(invocation, loaded.fleet, agent=agent, accepts=accepts)


def load_fleet_to_start(invocation: Invocation, agents: Sequence[str] = ()) -> Fleet:
    """Return the fleet for a command that runs it; shows settings that are not active yet, and agents that do not run.

    Of `agents`, or of all; after the first lines of a large fleet, how many more there are.
    """
    loaded = load_all(invocation)
    chosen = [one for one in (*loaded.blocked, *loaded.notices) if concerns_one(one, agents)]
    for problem in chosen[:TOLD]:
        invocation.screen.say(notice_text(problem, invocation.cwd))
    if len(chosen) > TOLD:
        more = len(chosen) - TOLD
        invocation.screen.say(f"notice: {more} more like these: nightherd config check")
    for name, agent in loaded.fleet.agents.items():
        if agent.blocked_by and (not agents or name in agents):
            invocation.screen.say(f"agent {name} does not run; the others do")
    return admitted(invocation, loaded.fleet)


def load_all(invocation: Invocation) -> LoadedFleet:
    """The fleet with all there is to say of it."""
    return load_fleet(
        invocation.fleet_file(),
        environ=invocation.environ,
        cwd=invocation.cwd,
        state_dir=invocation.named_state,
    )


def concerns_one(notice: Problem, agents: Sequence[str]) -> bool:
    """Whether the notice is about one of `agents`, or about the fleet itself; without any, always."""
    return not agents or any(concerns(notice, name) for name in agents)


def why_not_here(runtime: RuntimeName) -> RefusedError | None:
    """Why nothing here runs agents of this runtime; None when something does."""
    try:
        check_runtime(runtime)
    except RefusedError as error:
        return error
    return None


def warn_missing(invocation: Invocation, fleet: Fleet, agents: tuple[str, ...] = ()) -> None:
    """Say whose jobs will wait because what runs them is not installed here; of `agents`, or of all.

    And which notifications are not sent.
    """
    tell_unsent(invocation, fleet)
    chosen = [fleet.agents[name] for name in agents or fleet.agents if name in fleet.agents]
    for runtime in dict.fromkeys(agent.runtime.name for agent in chosen):
        error = why_not_here(runtime)
        if error is None:
            continue
        names = [agent.name for agent in chosen if agent.runtime.name == runtime]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        invocation.screen.say(
            f"the jobs of {', '.join(names[:NAMED])}{more} wait: {error.message}\n  try: {advice_for(error)}"
        )


def tell_unsent(invocation: Invocation, fleet: Fleet) -> None:
    """Say why notifications of the fleet will not be sent, one line for each reason."""
    from nightherd.model.notifications.routing import with_bots
    from nightherd.wiring.notifications import why_not_sent

    targets = with_bots(fleet)
    missing = why_not_sent() if targets else None
    if missing is not None:
        invocation.screen.say(f"notifications are not sent: {missing}")
    environment = {**fleet.environment, **invocation.environ}
    for target in targets.values():
        try:
            target.address(environment)
        except InvalidValueError as error:
            invocation.screen.say(f"notify target {target.id} is told nothing: {error.message}")


def concerns(notice: Problem, agent: str | None) -> bool:
    """Whether the notice is about `agent` or about the fleet itself."""
    path = f"{notice.path}."
    is_own = agent is not None and path.startswith(f"agents.{agent}.")
    return is_own or not path.startswith(("agents.", "workflows."))


def problems_text(problems: Sequence[Problem], cwd: Path) -> str:
    """Every problem with its line and a mark under what is meant."""
    return render_problems(problems, "text", cwd=cwd).rstrip("\n")


def problems_data(problems: Sequence[Problem], cwd: Path) -> list[dict[str, Any]]:
    """Every problem as plain data."""
    return [problem_data(problem, cwd=cwd) for problem in problems]


def notice_text(notice: Problem, cwd: Path) -> str:
    """A notice on one line."""
    place = notice.place
    file = shown_file(place.file, cwd)
    kind = "error" if notice.severity is Severity.BLOCKED else "notice"
    return neutralise(f"{kind}: {file}:{place.line}:{place.column}: {notice.message}")


SHOWN = 5
"""How many changes are named in a line."""


def admitted(
    invocation: Invocation, fleet: Fleet, *, agent: str | None = None, accepts: bool = True
) -> Fleet:
    """The fleet without what waits for a person; on a terminal the person there accepts all of it, if it `accepts`.

    `RefusedError` when `agent` is one that waits as a whole.
    """
    state_dir = invocation.new_state_directory()
    if not state_dir.is_dir():
        return fleet  # recorded with the first job
    admission = admit_answered(
        fleet,
        state_dir,
        at=system_clock().now(),
        is_accepted=accepts and is_at_terminal(invocation),
    )
    show_admission(invocation, admission)
    if admission.pending or admission.accepted:
        with suppress(NightherdError):  # the next one that loads the files asks
            anyio.run(ask_about, held_by(admission), state_dir)
    if agent in admission.fleet.withheld:
        get_agent(admission.fleet.agents, agent, admission.fleet.withheld)
    return admission.fleet


def show_admission(invocation: Invocation, admission: Admission) -> None:
    """One line for what was accepted, one for what waits."""
    if admission.accepted:
        invocation.screen.say(f"accepted: {short(admission.accepted)}")
    if admission.pending:
        invocation.screen.say(
            f"not in effect until a person accepts it: {short(admission.pending)}\n  try: {ACCEPT}"
        )


def short(changes: Sequence[Widening]) -> str:
    """The first of the changes, in one line."""
    named = "; ".join(neutralise(one.text) for one in changes[:SHOWN])
    return f"{named} and {len(changes) - SHOWN} more" if len(changes) > SHOWN else named


def is_at_terminal(invocation: Invocation) -> bool:
    """Whether a person is there: a terminal, and no agent above this process."""
    has_terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    return has_terminal and agent_above_here(invocation.new_state_directory()) is None
