"""What the store has to tell an operator reaches whoever runs a job."""

from __future__ import annotations

from pathlib import Path

from surfaces.drivers import Cli


def test_changes_put_back_from_the_ledger_are_told_by_the_next_run(cli: Cli, nowhere: Path) -> None:
    assert cli("init").code == 0
    assert cli("run", "hello").code == 0
    for path in (nowhere / ".nightherd").glob("nightherd.db*"):
        path.unlink()

    ran = cli("run", "hello")

    assert ran.code == 0
    assert "they were restored from the ledger" in ran.err


def test_worker_tells_it_too(cli: Cli, nowhere: Path) -> None:
    assert cli("init").code == 0
    assert cli("run", "hello", "--detach").code == 0
    for path in (nowhere / ".nightherd").glob("nightherd.db*"):
        path.unlink()

    worked = cli("worker", "--until-idle")

    assert worked.code == 0
    assert "they were restored from the ledger" in worked.err


def test_every_command_that_prints_a_text_also_gives_it_to_programs(
    cli: Cli, nowhere: Path
) -> None:
    script, schema = cli("completion", "bash", "--json"), cli("config", "schema", "--json")

    assert (script.code, schema.code) == (0, 0)
    assert script.data["shell"] == "bash"
    assert "_NIGHTHERD_COMPLETE" in script.data["script"]
    assert schema.data["kind"] == "fleet"
    assert schema.data["json_schema"]["type"] == "object"
