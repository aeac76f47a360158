"""One mistake in an agent is one error: nothing else complains that the agent is not there."""

from __future__ import annotations

from config.folder import Folder

FLEET = """\
webhooks:
  enabled: true
  secret_env: HOOK_SECRET
  endpoints:
    reviews: {{agent: {name}}}
agents:
  - name: reviewer
    runtime: scripted
    max_turns: many
    script: [{{say: hi}}]
"""


def test_webhook_of_a_broken_agent_is_not_an_error_of_its_own(folder: Folder) -> None:
    folder.write("nightherd.yaml", FLEET.format(name="reviewer"))

    (error,) = folder.errors()

    assert "nightherd.yaml:9:16" in error


def test_webhook_of_an_agent_that_is_not_declared_still_is(folder: Folder) -> None:
    folder.write("nightherd.yaml", FLEET.format(name="reviwer"))

    assert [error for error in folder.errors() if "no agent 'reviwer'" in error]
