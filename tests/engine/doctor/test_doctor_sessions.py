"""Sessions of which only the journals of their jobs are left: they come back as what they were."""

from __future__ import annotations

import json
import shutil

import pytest
from msgspec.structs import replace

from engine.doctor.ward import Ward
from nightherd.model.sessions.session import Session, SessionMode, SessionQuery, SessionStatus
from nightherd.state.reader import SqliteReader

AGENT = """\
agents:
  - name: keeper
    runtime: scripted
    default_prompt: go
    session: {mode: MODE, timeout: 30d, idle_timeout: 2d}
    script:
      - say: turn ${turn}
"""


@pytest.fixture
def keeper(ward: Ward, request: pytest.FixtureRequest) -> Ward:
    """A fleet of one agent, whose sessions are of the given mode."""
    (ward.root.parent / "nightherd.yaml").write_text(AGENT.replace("MODE", request.param))
    return ward


def sessions(ward: Ward) -> dict[str, Session]:
    """Every session, but for what a record cannot tell: instants of rows, and places in lists."""
    reader = SqliteReader(ward.root)
    try:
        found = reader.list_sessions(SessionQuery(limit=100))
    finally:
        reader.close()
    return {
        one.id: replace(one, number=0, last_active_at=one.created_at, token_estimate=0)
        for one in found
    }


def lose_all_but_journals(ward: Ward) -> None:
    ward.delete_database()
    shutil.rmtree(ward.root / "ledger")
    assert ward.doctor("--rebuild").result.code == 0


@pytest.mark.parametrize("keeper", ["persistent", "per_channel", "fresh_per_job"], indirect=True)
def test_session_that_one_journal_tells_of_is_what_it_was(keeper: Ward) -> None:
    is_by_channel = "per_channel" in (keeper.root.parent / "nightherd.yaml").read_text()
    channel = ["--channel", "room-1"] if is_by_channel else []
    first = keeper.run("keeper", *channel)
    before = sessions(keeper)
    usual = keeper.show(first)["session_id"]

    lose_all_but_journals(keeper)

    assert sessions(keeper) == before
    (session,) = before.values()
    again = keeper.show(keeper.run("keeper", *channel))
    is_shared = session.mode is not SessionMode.FRESH_PER_JOB
    assert (again["session_id"] == usual) == is_shared
    keeper.clean("--verify")


@pytest.mark.parametrize("keeper", ["persistent"], indirect=True)
def test_branch_comes_back_as_one_and_is_not_joined_unasked(keeper: Ward) -> None:
    trunk = keeper.show(keeper.run("keeper"))["session_id"]
    forked = keeper.cli("session", "fork", trunk, "--run", "-p", "another way", "--json")
    assert forked.code == 0, forked
    before = sessions(keeper)
    branch = next(one for one in before.values() if one.id != trunk)
    assert keeper.cli("run", "keeper", "--resume", branch.id, "--json").code == 0
    before = sessions(keeper)
    shown = keeper.cli("session", "show", branch.id, "--history", "--json").data["history"]

    lose_all_but_journals(keeper)

    assert sessions(keeper) == before
    again = keeper.cli("session", "show", branch.id, "--history", "--json").data["history"]
    assert again == shown
    assert keeper.show(keeper.run("keeper"))["session_id"] == trunk


@pytest.mark.parametrize("keeper", ["persistent"], indirect=True)
def test_branch_whose_parent_is_lost_goes_on_from_its_own_jobs(keeper: Ward) -> None:
    first = keeper.run("keeper")
    trunk = keeper.show(first)["session_id"]
    keeper.cli("session", "fork", trunk, "--run", "-p", "another way", "--json")
    keeper.journal(first).unlink()

    lose_all_but_journals(keeper)

    (branch,) = sessions(keeper).values()
    assert (branch.parent_session_id, branch.base_messages) == (None, 0)
    resumed = keeper.cli("run", "keeper", "--resume", branch.id, "--json")
    assert (resumed.code, resumed.data["status"]) == (0, "completed")


@pytest.mark.parametrize("keeper", ["persistent"], indirect=True)
def test_journal_whose_header_does_not_tell_of_its_session_still_gives_one(keeper: Ward) -> None:
    journal = keeper.journal(keeper.run("keeper"))
    header, rest = journal.read_bytes().split(b"\n", 1)
    told = json.loads(header)
    del told["extra"]["session"]
    journal.write_bytes(json.dumps(told).encode() + b"\n" + rest)

    lose_all_but_journals(keeper)

    (session,) = sessions(keeper).values()
    assert (session.mode, session.status) == (SessionMode.FRESH_PER_JOB, SessionStatus.COMPLETED)
