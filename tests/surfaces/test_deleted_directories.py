"""A directory of the state that somebody deletes while a job runs: what the job comes to, and that it can be mended."""

from __future__ import annotations

from pathlib import Path

import pytest

from surfaces.drivers import Cli

FLEET = """\
agents:
  - name: vandal
    runtime: scripted
    permission_mode: bypassPermissions
    script:
      - say: I begin.
      - tool: Bash
        input: {command: "find .nightherd/${prompt} -delete"}
      - say: I am done.
"""


@pytest.mark.parametrize(
    ("name", "code", "status"),
    [
        ("sessions", 0, "completed"),
        ("logs", 0, "completed"),
        ("blobs", 0, "completed"),
        ("ledger", 0, "completed"),
        ("jobs", 1, "failed"),
    ],
)
def test_job_ends_as_far_as_its_record_can_be_kept(
    name: str, code: int, status: str, cli: Cli, nowhere: Path
) -> None:
    (nowhere / "nightherd.yaml").write_text(FLEET)

    assert cli("run", "vandal", "-p", name).code == code

    assert cli("jobs", "show", "@last", "--json").data["status"] == status
    # What the job was set to work with is lost with the bodies: that is told until a person knows it.
    assert cli("doctor", "--fix", "--verify").code == (1 if name == "blobs" else 0)
    if name == "blobs":
        assert cli("doctor", "--acknowledge").code == 0
    level = "warning" if name == "blobs" else "ok"
    assert cli("doctor", "--verify", "--json").data["level"] == level
    assert cli("run", "vandal", "-p", "nothing").code == 0
