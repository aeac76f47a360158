"""Commands of an agent with a container, which are not the agent's own: setup and hooks, run in a container like its."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from pathlib import Path

from msgspec.structs import replace

from nightherd.errors import ContainerEngineError, FencedError, NightherdError
from nightherd.model.hooks import ShellCommand
from nightherd.ports import HookCall, HookResult, Runtime, RuntimeRequest
from nightherd.runtimes.claude.installation import InstalledClaude
from nightherd.runtimes.container.containers import Containers
from nightherd.runtimes.container.egress_notices import EgressNotices
from nightherd.runtimes.container.runtime import ContainerRuntime
from nightherd.runtimes.hook_runner import run_command
from nightherd.runtimes.keeper.keepers import Keepers

PASSED_ON = ("GIT_CEILING_DIRECTORIES",)
"""Variables of the call that mean the same inside."""


def _no_runtime(keepers: Keepers, claude: InstalledClaude | None) -> Runtime:
    raise ValueError("no agent runs here")


async def run_command_inside(
    containers: Containers, state_dir: Path, grace: timedelta, command: ShellCommand, call: HookCall
) -> HookResult:
    """Run the command to its end or its timeout, in the agent's container or in a short one on the same terms.

    `ContainerEngineError` when the engine cannot be reached, which may pass.
    """
    where = call.container
    policy = where.agent.container if where is not None else None
    if where is None or policy is None:
        raise ValueError("the call names no container")
    # Nothing but the agent itself gets its login.
    agent = replace(where.agent, runtime=replace(where.agent.runtime, needs_claude=False))
    request = RuntimeRequest(
        job_id=call.job_id,
        execution=call.execution,
        session_id=where.session_id,
        agent=agent,
        prompt="",
        environment=call.environment,
        secrets=call.secrets,
        protected=where.protected,
        workspace=where.workspace,
        borrowed=where.borrowed,
    )
    runtime = ContainerRuntime(containers, _no_runtime, state_dir, grace)
    notices = EgressNotices()
    try:
        async with runtime.opened(request, policy, notices) as (running, keepers, inside):
            known = {name: call.environment[name] for name in PASSED_ON if name in call.environment}
            environment = {**inside.environment, **known}
            result = await run_command(
                command, dataclasses.replace(call, environment=environment), keepers
            )
            running.is_done = True
        return replace(result, notices=tuple(notices.texts()))
    except (FencedError, ContainerEngineError):
        raise
    except NightherdError as error:
        text = error.message if error.hint is None else f"{error.message}; {error.hint}"
        return HookResult(success=False, error=text)
