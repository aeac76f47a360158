"""The fleet with workflows that commands are driven with, and what tests read from documents."""

from __future__ import annotations

from typing import Any

FLOWS = """\
agents:
  - name: writer
    runtime: scripted
    default_prompt: go
    script:
      - say: "wrote ${prompt}"
      - usage: {input_tokens: 100, output_tokens: 20, cost_usd: 0.0012}
  - name: failing
    runtime: scripted
    default_prompt: go
    script:
      - fail: {code: bad_luck, message: No luck today.}
  - name: patient
    runtime: scripted
    default_prompt: go
    script:
      - say: working
      - sleep: 60s
      - say: never said

workflows:
  simple:
    inputs:
      topic: {type: text, default: tests}
    phases:
      - {name: plan, agent: writer, prompt: "plan ${inputs.topic}"}
      - {name: check, bash: "echo checked", depends_on: plan, when: "inputs.topic == 'tests'"}
  gated:
    phases:
      - {name: plan, agent: writer, prompt: the plan}
      - name: ok
        depends_on: plan
        gate: {summary: "Go on with ${phases.plan.output}?", artifact: {phase: plan}}
      - {name: build, agent: writer, depends_on: ok, prompt: "build ${phases.ok.output.artifact}"}
  many:
    inputs:
      files: {type: list, default: [a, b, c]}
    phases:
      - name: each
        for_each: {items: inputs.files}
        agent: writer
        prompt: do ${item}
      - name: again
        depends_on: each
        loop: {max_iterations: 5, until: "loop.iteration >= 2", fresh_context: true}
        phases:
          - {name: look, agent: writer, prompt: "look ${loop.iteration}"}
  broken:
    phases:
      - {name: plan, agent: writer, prompt: plan}
      - {name: work, agent: failing, prompt: work, depends_on: plan}
      - {name: rest, agent: writer, prompt: rest, depends_on: work}
  waiting:
    phases:
      - {name: deployed, wait: {event: deployed}}
      - {name: after, agent: writer, prompt: "after ${phases.deployed.output}", depends_on: deployed}
  brief:
    phases:
      - {name: pause, wait: 200ms}
      - {name: after, agent: writer, prompt: after, depends_on: pause}
  slow:
    phases:
      - {name: sleep, agent: patient, prompt: go}
  outer:
    phases:
      - {name: inner, workflow: simple, inputs: {topic: below}}
"""


def by_path(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every node of a run's document, by its path."""
    found: dict[str, dict[str, Any]] = {}

    def add(nodes: list[dict[str, Any]]) -> None:
        for node in nodes:
            found[node["path"]] = node
            add(node["nodes"])

    add(data["nodes"])
    return found
