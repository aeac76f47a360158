"""Sessions: which one a job joins, and what forking, choosing, expiring and cleaning up do to them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from model.checked_rows import CheckedRows
from nightherd.model.change import Answer, Applied, Refused, Why
from nightherd.model.ids import SessionId
from nightherd.model.jobs.changes import RecordContainer, SubmitJob
from nightherd.model.jobs.job import Job, JobTexts
from nightherd.model.sessions.changes import (
    ExpireSession,
    ForkSession,
    RemoveSession,
    RenameSession,
    UseSession,
)
from nightherd.model.sessions.session import (
    Session,
    SessionMode,
    SessionStatus,
    expires_at,
    is_expired,
    move_of,
)
from nightherd.testing.state_values import BEGINNING, job_id, settle, start, submit

DAY_S = 86_400.0


def shared(number: int, **changes: object) -> SubmitJob:
    """A job of the agent's persistent session, which lasts a day unused."""
    change = submit(number, mode=SessionMode.PERSISTENT)
    return replace(change, session=replace(change.session, max_idle_s=DAY_S, **changes))


def later(change: SubmitJob, by: timedelta) -> SubmitJob:
    at = change.job.created_at + by
    return replace(
        change,
        job=replace(change.job, created_at=at),
        session=replace(change.session, created_at=at, last_active_at=at),
    )


def home_of(rows: CheckedRows, number: int) -> Session:
    job = rows.get(Job, job_id(number))
    assert job is not None
    home = rows.get(Session, job.session_id or "")
    assert home is not None
    return home


def note_of(rows: CheckedRows, number: int) -> str | None:
    texts = rows.get(JobTexts, job_id(number))
    assert texts is not None
    return texts.session_note


def after_one_job(change: SubmitJob | None = None) -> CheckedRows:
    """A state in which the first job has come and gone."""
    rows = CheckedRows()
    for one in (change or shared(1), start(1), settle(1)):
        assert isinstance(rows.apply(one), Applied)
    return rows


def why(answer: Answer) -> Why:
    assert isinstance(answer, Refused)
    return answer.why


def fork_of(session: Session, number: int = 9) -> ForkSession:
    return ForkSession(
        session=replace(
            session,
            id=SessionId(f"sess-{number:08d}"),
            status=SessionStatus.CREATED,
            parent_session_id=session.id,
            base_job_id=job_id(1),
            base_seq=5,
            base_messages=2,
        )
    )


def test_next_job_of_the_key_joins_the_session() -> None:
    rows = after_one_job()

    rows.apply(shared(2))

    assert (home_of(rows, 2).id, note_of(rows, 2)) == (home_of(rows, 1).id, None)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"runtime_type": "cli"}, "run by scripted, and the agent is run by cli now"),
        ({"working_directory": "/meadow"}, "in /pasture, and the agent works in /meadow now"),
        ({"docker_enabled": True}, "the agent is in a container now"),
    ],
)
def test_session_that_does_not_fit_is_left_and_the_job_knows_why(
    change: dict[str, object], reason: str
) -> None:
    rows = after_one_job()

    rows.apply(shared(2, **change))
    rows.apply(shared(3, **change))

    assert home_of(rows, 2).id != home_of(rows, 1).id
    assert reason in (note_of(rows, 2) or "")
    assert (home_of(rows, 3).id, note_of(rows, 3)) == (home_of(rows, 2).id, None)


@pytest.mark.parametrize("inside", [True, False])
def test_session_is_where_its_last_job_ran(inside: bool) -> None:
    rows = after_one_job(shared(1, docker_enabled=not inside))
    found = RecordContainer(job_id=job_id(2), epoch=1, container_id="c1" if inside else None)
    session = replace(home_of(rows, 1), turn_count=1)

    moved = move_of(session, is_inside=inside)
    into = replace(submit(2, mode=SessionMode.PERSISTENT), into=session.id)
    for change in (into, start(2), found, settle(2)):
        assert isinstance(rows.apply(change), Applied)
    rows.apply(shared(3, docker_enabled=inside))

    places = ("on this machine", "in a container")
    before, now = places if inside else places[::-1]
    assert moved == f"session {session.id} was {before} before, and continues {now}"
    assert home_of(rows, 2).docker_enabled is inside
    assert move_of(home_of(rows, 2), is_inside=inside) is None
    assert (home_of(rows, 3).id, note_of(rows, 3)) == (session.id, None)


def test_session_in_which_nothing_was_said_does_not_move() -> None:
    rows = CheckedRows()
    rows.apply(shared(1))

    assert move_of(home_of(rows, 1), is_inside=True) is None
    assert move_of(replace(home_of(rows, 1), runtime_session_id="r1"), is_inside=True) is not None


def test_session_that_went_unused_for_too_long_is_expired_and_a_new_one_begins() -> None:
    rows = after_one_job()

    rows.apply(later(shared(2), timedelta(days=2)))

    assert home_of(rows, 1).status is SessionStatus.EXPIRED
    assert home_of(rows, 2).id != home_of(rows, 1).id
    assert note_of(rows, 2) == f"session {home_of(rows, 1).id}: it has expired"


def test_session_that_a_job_waits_for_does_not_expire() -> None:
    rows = after_one_job()
    rows.apply(shared(2))

    rows.apply(later(shared(3), timedelta(days=2)))
    answer = rows.apply(ExpireSession(session_id=home_of(rows, 1).id, at=BEGINNING + timedelta(9)))

    assert home_of(rows, 3).id == home_of(rows, 1).id
    assert why(answer) is Why.SESSION_BUSY


def test_terms_of_a_session_are_those_of_the_last_job_that_joined() -> None:
    rows = after_one_job()

    rows.apply(shared(2, max_age_s=10 * DAY_S))

    assert home_of(rows, 1).max_age_s == 10 * DAY_S


def test_age_and_idleness_both_end_a_session_whichever_comes_first() -> None:
    session = replace(shared(1).session, max_age_s=100.0, max_idle_s=60.0)
    used = replace(session, last_active_at=session.created_at + timedelta(seconds=90))

    assert expires_at(session) == session.created_at + timedelta(seconds=60)
    assert expires_at(used) == session.created_at + timedelta(seconds=100)
    assert not is_expired(used, session.created_at + timedelta(seconds=99))
    assert is_expired(used, session.created_at + timedelta(seconds=100))
    assert not is_expired(replace(used, status=SessionStatus.ACTIVE), BEGINNING + timedelta(9))


def test_chosen_session_is_joined_as_it_is() -> None:
    rows = after_one_job()
    home = home_of(rows, 1)

    rows.apply(replace(later(shared(2, runtime_type="cli"), timedelta(days=9)), into=home.id))

    assert home_of(rows, 2) == home


def test_session_that_is_over_cannot_be_chosen() -> None:
    rows = after_one_job(submit(1))

    over = rows.apply(replace(submit(2), into=home_of(rows, 1).id))
    missing = rows.apply(replace(submit(3), into=SessionId("sess-nowhere1")))

    assert (why(over), why(missing)) == (Why.SESSION_OVER, Why.MISSING)


def test_fork_is_never_joined_until_it_is_chosen_and_then_it_is_the_current_one() -> None:
    rows = after_one_job()
    fork = fork_of(home_of(rows, 1))
    rows.apply(fork)

    rows.apply(shared(2))
    rows.apply(UseSession(session_id=fork.session.id))
    rows.apply(shared(3))
    rows.apply(UseSession(session_id=home_of(rows, 1).id))
    rows.apply(shared(4))

    assert [home_of(rows, number).id for number in (2, 3, 4)] == [
        home_of(rows, 1).id,
        fork.session.id,
        home_of(rows, 1).id,
    ]


def test_session_that_begins_after_one_was_chosen_is_the_current_one() -> None:
    rows = after_one_job()
    fork = fork_of(home_of(rows, 1))
    rows.apply(fork)
    rows.apply(UseSession(session_id=fork.session.id))

    rows.apply(shared(2, working_directory="/meadow"))
    rows.apply(shared(3, working_directory="/meadow"))

    assert home_of(rows, 2).id not in (home_of(rows, 1).id, fork.session.id)
    assert home_of(rows, 3).id == home_of(rows, 2).id


def test_choosing_the_current_session_changes_nothing() -> None:
    rows = after_one_job()

    answer = rows.apply(UseSession(session_id=home_of(rows, 1).id))

    assert isinstance(answer, Applied)
    assert answer.rows == ()


def test_fork_leaves_its_parent_alone_whatever_state_that_is_in() -> None:
    for number in (1, 2):
        rows = after_one_job(submit(1) if number == 1 else shared(1))
        parent = home_of(rows, 1)

        answer = rows.apply(fork_of(parent))

        assert isinstance(answer, Applied)
        assert home_of(rows, 1) == parent


def test_fork_of_nothing_and_fork_with_a_taken_id_are_refused() -> None:
    rows = after_one_job()
    good = fork_of(home_of(rows, 1))
    orphan = replace(
        good, session=replace(good.session, parent_session_id=SessionId("sess-nowhere1"))
    )

    first, again, missing = (rows.apply(one) for one in (good, good, orphan))

    assert isinstance(first, Applied)
    assert (why(again), why(missing)) == (Why.ID_TAKEN, Why.MISSING)


def test_one_jobs_own_session_cannot_be_the_current_one() -> None:
    rows = after_one_job(submit(1))

    assert why(rows.apply(UseSession(session_id=home_of(rows, 1).id))) is Why.STATUS


def test_expiry_comes_at_its_time_and_not_before() -> None:
    rows = after_one_job()
    home = home_of(rows, 1).id

    early = rows.apply(ExpireSession(session_id=home, at=BEGINNING + timedelta(hours=1)))
    due = rows.apply(ExpireSession(session_id=home, at=BEGINNING + timedelta(days=2)))
    again = rows.apply(ExpireSession(session_id=home, at=BEGINNING + timedelta(days=2)))

    assert (why(early), why(again)) == (Why.TOO_EARLY, Why.STATUS)
    assert isinstance(due, Applied)


def test_cleaned_up_session_stays_as_a_tombstone_that_nothing_goes_on_in() -> None:
    rows = after_one_job()
    home = home_of(rows, 1).id

    rows.apply(RemoveSession(session_id=home, at=BEGINNING + timedelta(days=1)))

    assert home_of(rows, 1).removed_at == BEGINNING + timedelta(days=1)
    assert why(rows.apply(RenameSession(session_id=home, name="x"))) is Why.SESSION_OVER
    assert why(rows.apply(UseSession(session_id=home))) is Why.SESSION_OVER
    assert why(rows.apply(replace(shared(2), into=home))) is Why.SESSION_OVER
    assert isinstance(rows.apply(fork_of(home_of(rows, 1))), Applied)


def test_session_in_use_is_not_cleaned_up() -> None:
    rows = CheckedRows()
    for change in (shared(1), start(1)):
        rows.apply(change)

    answer = rows.apply(RemoveSession(session_id=home_of(rows, 1).id, at=BEGINNING))

    assert why(answer) is Why.SESSION_BUSY


def test_name_is_given_and_taken_away() -> None:
    rows = after_one_job()
    home = home_of(rows, 1).id

    rows.apply(RenameSession(session_id=home, name="winter plans"))
    named = home_of(rows, 1).name
    rows.apply(RenameSession(session_id=home, name=None))

    assert (named, home_of(rows, 1).name) == ("winter plans", None)
