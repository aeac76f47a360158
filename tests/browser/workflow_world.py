"""Workflows for tests of pages: a gate, groups, an event, a failure and a limit, with the agents they need."""

from __future__ import annotations

from typing import Any

from browser.fleet_world import AGENTS, FleetWorld

WORKFLOW_FLEET = (
    AGENTS
    + """\
  - name: drafter
    runtime: scripted
    script:
      - say: "A **draft** about ${prompt}."
      - usage: {input_tokens: 100, output_tokens: 20, cost_usd: 0.01}
workflows:
  news:
    description: Drafts, asks and publishes.
    inputs:
      topic: {type: text, required: true, description: What it is about.}
      copies: {type: number, default: 2}
      options: {type: object}
    limits: {spend: 1.00}
    on: {schedules: {nightly: {cron: "0 3 1 1 *", inputs: {topic: the night}}}}
    phases:
      - {name: draft, agent: drafter, prompt: "${inputs.topic}"}
      - {name: approve, gate: {summary: "Publish the news about ${inputs.topic}?", artifact: {phase: draft}}}
      - {name: publish, bash: 'printf %s "$TEXT"', env: {TEXT: "${phases.approve.output.artifact}"}}
  groups:
    phases:
      - {name: list, bash: "echo '[1, 2, 3]'", output: {type: array}}
      - {name: each, for_each: {items: phases.list.output}, agent: drafter, prompt: "part ${item}"}
      - name: circle
        loop: {max_iterations: 3, until: loop.iteration >= 2}
        phases:
          - {name: plan, agent: drafter, prompt: "round ${loop.iteration}"}
          - {name: check, bash: "echo checked"}
  deploy:
    phases:
      - {name: window, wait: {event: window-open}, timeout: 12h}
      - {name: announce, bash: 'printf %s "$WHO"', env: {WHO: "${phases.window.output.by}"}}
  fragile:
    inputs: {word: {default: cow}}
    phases:
      - {name: good, bash: "echo good"}
      - {name: bad, bash: 'echo "$WORD"; [ -e repaired ]', env: {WORD: "${inputs.word}"}}
      - {name: after, bash: "echo after"}
  capped:
    phases: [{name: talk, agent: capped, prompt: go}]
  held:
    phases: [{name: hold, agent: held, prompt: go}]
"""
)


async def start_run(fleet: FleetWorld, workflow: str, **inputs: Any) -> str:
    """The id of a new run."""
    return str((await fleet.post(f"/v1/workflows/{workflow}/runs", inputs=inputs))["id"])


async def until_run(fleet: FleetWorld, run: str, *statuses: str) -> None:
    """Until the run has one of these statuses."""

    async def is_so() -> bool:
        return (await fleet.get(f"/v1/runs/{run}"))["status"] in statuses

    await fleet.until(is_so)


async def ended_run(fleet: FleetWorld, workflow: str, **inputs: Any) -> str:
    """A run that has ended, however it did."""
    run = await start_run(fleet, workflow, **inputs)
    await until_run(fleet, run, "succeeded", "failed", "cancelled")
    return run


async def paused_run(fleet: FleetWorld, workflow: str, **inputs: Any) -> str:
    """A run in which everything waits."""
    run = await start_run(fleet, workflow, **inputs)
    await until_run(fleet, run, "paused")
    return run
