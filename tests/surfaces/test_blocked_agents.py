"""An agent whose protection cannot be given does not run, and every surface says why and where."""

from __future__ import annotations

from pathlib import Path

from surfaces.drivers import Cli

UNPRICED = """\
agents:
  - name: own
    runtime: native
    model: "anthropic:my-own-model-7b"
    limits: {spend: 0.50}
"""


def test_run_of_an_unpriced_model_is_a_located_error(cli: Cli, nowhere: Path) -> None:
    (nowhere / "nightherd.yaml").write_text(UNPRICED)

    ran = cli("run", "own", "-p", "go")
    detached = cli("run", "own", "-p", "go", "--detach")

    assert (ran.code, detached.code) == (78, 78)
    assert "nightherd.yaml:4:12: the price of 'anthropic:my-own-model-7b'" in ran.err
    assert cli("jobs", "--json").data == []
