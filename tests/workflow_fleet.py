"""A fleet with workflows for tests, and a worker that works on its runs until nothing is left to do."""

from __future__ import annotations

from typing import Any

from nightherd.engine.contexts import WorkerContext
from nightherd.engine.workers.worker import WorkerReports
from nightherd.model.agents.agent import Fleet
from nightherd.wiring.running import make_worker_loop

WORKFLOW_FLEET = """\
fleet: {name: flows}
webhooks:
  secret_env: HOOK_SECRET
  endpoints:
    started: {signature: standard}
agents:
  - name: writer
    runtime: scripted
    script:
      - say: "Wrote ${prompt}."
      - usage: {input_tokens: 10, output_tokens: 2, cost_usd: 0.01}
  - name: chatty
    runtime: scripted
    script:
      - repeat: 60
        steps: [{say: word}, {usage: {output_tokens: 1}}]
  - name: pair
    runtime: scripted
    limits: {turns: 1}
    script: [{say: one}, {say: two}]
workflows:
  build:
    description: Plans, asks and publishes.
    inputs:
      title: {required: true}
      count: {type: number, default: 2}
    on:
      webhooks: {started: {inputs: {title: "${trigger.payload.title}"}}}
    phases:
      - {name: plan, agent: writer, prompt: "a plan for ${inputs.title}"}
      - {name: ask, gate: {summary: "Publish ${inputs.title}?", artifact: {phase: plan}}}
      - {name: publish, bash: 'printf %s "$TEXT"', env: {TEXT: "${phases.ask.output.artifact}"}}
  quick:
    inputs: {word: {default: cow}}
    phases:
      - {name: first, agent: writer, prompt: "${inputs.word}"}
      - {name: second, agent: chatty, prompt: go}
  wide:
    phases:
      - {name: left, agent: chatty, prompt: go, depends_on: []}
      - {name: right, agent: chatty, prompt: go, depends_on: []}
      - {name: join, bash: "echo joined", depends_on: [left, right]}
  single:
    concurrency: {max_runs: 1, when_busy: drop}
    phases: [{name: ask, gate: {summary: Go on?}}]
  waiting:
    phases:
      - {name: deployed, wait: {event: deployed}}
      - {name: after, bash: 'printf %s "$V"', env: {V: "${phases.deployed.output.version}"}}
  failing:
    phases:
      - {name: good, bash: "echo good"}
      - {name: bad, bash: "exit 3"}
  capped:
    phases: [{name: talk, agent: pair, prompt: go}]
  unattended:
    on: {api: false, webhooks: [started]}
    phases: [{name: only, bash: "echo hi"}]
"""


def _ignore(*_: Any) -> None:
    """Nothing is shown."""


async def work(fleet: Fleet, context: WorkerContext) -> None:
    """Work until no job is left that can be run."""
    reports = WorkerReports(
        on_start=_ignore,
        on_event=_ignore,
        on_end=_ignore,
        on_rescue=_ignore,
        on_trouble=_ignore,
    )
    await make_worker_loop(fleet, context, reports, leaves_when_idle=True).work()
