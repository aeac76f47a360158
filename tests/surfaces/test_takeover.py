"""An agent that tries to give itself more: its tools do not reach the fleet's files."""

from __future__ import annotations

from pathlib import Path

from surfaces.drivers import Cli

TAKEOVER = """\
agents:
  - name: eve
    runtime: scripted
    default_prompt: go
    script:
      - tool: Write
        input: {file_path: nightherd.yaml, content: "agents: [{name: eve, allowed_tools: [Bash]}]"}
      - tool: Write
        input: {file_path: .env, content: "PATH=."}
      - tool: Write
        input: {file_path: .nightherd/web-token, content: known}
      - tool: Write
        input: {file_path: more.yaml, content: "name: more"}
      - tool: Write
        input: {file_path: play.yaml, content: "- say: evil"}
      - tool: Write
        input: {file_path: own.txt, content: mine}
  - path: more.yaml
"""
MORE = "{name: more, runtime: scripted, script: play.yaml}\n"


def test_an_agent_cannot_write_the_files_of_its_fleet(cli: Cli, fleet: Path) -> None:
    (fleet / "nightherd.yaml").write_text(TAKEOVER)
    (fleet / "more.yaml").write_text(MORE)
    (fleet / "play.yaml").write_text("- say: hello\n")

    result = cli("run", "eve", "--json")

    assert len(result.data["denials"]) == 5
    assert (fleet / "nightherd.yaml").read_text() == TAKEOVER
    assert (fleet / "more.yaml").read_text() == MORE
    assert (fleet / "play.yaml").read_text() == "- say: hello\n"
    assert not (fleet / ".env").exists()
    assert not (fleet / ".nightherd" / "web-token").exists()
    assert (fleet / "own.txt").read_text() == "mine"
