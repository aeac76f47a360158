"""A job that ends while it waits: its `state.json` says so, and so do those of all jobs below it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from surfaces.drivers import Cli

FLEET = """\
agents:
  - name: boss
    runtime: scripted
    default_prompt: go
    allowed_tools: [Spawn]
    limits:
      spend: 0.10
      on_reached: {how}
      hooks: [{{event: limit, directive: judge}}]
    script:
      - tool: Spawn
        input: {{agent: helper, prompt: help}}
      - say: done
  - name: helper
    runtime: scripted
    script:
      - say: helping
      - usage: {{input_tokens: 1, output_tokens: 1, cost_usd: 0.20}}
  - name: judge
    runtime: scripted
    default_prompt: What is to become of it?
    script: [{{say: fail}}]
"""


def documents(fleet: Path) -> dict[str, dict[str, Any]]:
    """Every document, by its agent."""
    found = [json.loads(path.read_text()) for path in fleet.glob(".nightherd/threads/*/state.json")]
    return {one["directive"]: one for one in found}


def statuses(fleet: Path) -> dict[str, str]:
    return {agent: one["status"] for agent, one in documents(fleet).items() if agent != "judge"}


def test_a_job_that_is_cancelled_while_it_waits_is_cancelled_in_its_document(
    fleet: Path, cli: Cli
) -> None:
    (fleet / "nightherd.yaml").write_text(FLEET.format(how="suspend"))
    cli("run", "boss")
    assert statuses(fleet) == {"boss": "suspended", "helper": "suspended"}
    boss = documents(fleet)["boss"]

    assert cli("jobs", "cancel", boss["thread_id"]).code == 0

    assert statuses(fleet) == {"boss": "cancelled", "helper": "cancelled"}
    after = documents(fleet)["boss"]
    assert (after["suspend_reason"], after["suspend_metadata"]) == (None, None)
    assert (after["messages"], after["limits"]) == (boss["messages"], boss["limits"])


def test_a_job_that_others_let_fail_has_failed_in_its_document(fleet: Path, cli: Cli) -> None:
    (fleet / "nightherd.yaml").write_text(FLEET.format(how="hook"))
    cli("run", "boss")
    assert statuses(fleet) == {"boss": "suspended", "helper": "suspended"}

    assert cli("worker", "--until-idle").code == 0

    assert statuses(fleet) == {"boss": "error", "helper": "cancelled"}
