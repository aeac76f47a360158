"""A workflow of an included fleet runs by its qualified name, where its own fleet file is."""

from __future__ import annotations

from pathlib import Path

import pytest

from surfaces.drivers import Cli

SUB = """\
agents:
  - {name: coder, runtime: scripted, script: [{say: "${prompt}"}]}
workflows:
  where:
    phases:
      - {name: here, bash: pwd}
      - {name: say, agent: coder, prompt: "At ${phases.here.output}"}
  outer:
    phases: [{name: inner, workflow: where}]
"""


@pytest.mark.parametrize("name", ["sub.where", "sub.outer"])
def test_commands_of_a_sub_fleet_run_beside_its_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, name: str
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "nightherd.yaml").write_text(SUB)
    (tmp_path / "nightherd.yaml").write_text("fleets: [{path: sub}]\n")
    monkeypatch.chdir(tmp_path)

    result = cli("workflow", "run", name)

    assert result.code == 0, result.err
    assert f"At {tmp_path}/sub" in result.out
