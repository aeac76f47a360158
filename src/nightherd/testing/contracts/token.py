"""What every state store must do for named tokens, answer links and browser sessions; see `state_contract` for how to run checks."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from nightherd.model.access.browser_session import (
    AddBrowserSession,
    BrowserSession,
    EndBrowserSessions,
)
from nightherd.model.access.role import Role
from nightherd.model.change import Why
from nightherd.model.inbox.changes import AnswerItem, AskPerson
from nightherd.model.inbox.item import (
    Asked,
    InboxItem,
    InboxTexts,
    ItemId,
    ItemKind,
    ItemStatus,
    Verdict,
)
from nightherd.model.inbox.token import (
    AddToken,
    AnswerLink,
    MakeLink,
    RevokeToken,
    Token,
    secret_hash,
)
from nightherd.testing.contracts.state import OpenState, checks_in, must_apply, must_refuse
from nightherd.testing.state_values import BEGINNING

LATER = BEGINNING + timedelta(minutes=5)
FIRST = Token(name="alice", hash=secret_hash("one"), created_at=BEGINNING, created_by="owner")
ITEM = ItemId("ask-0123456789ab")
LINK = AnswerLink(
    id=secret_hash("link"),
    item_id=ITEM,
    approver="alice",
    created_at=BEGINNING,
    expires_at=BEGINNING + timedelta(days=7),
)


async def check_token_is_found_by_its_hash_until_it_is_revoked(state: OpenState) -> None:
    await must_apply(state, AddToken(token=FIRST))
    assert state.reader.find_token(FIRST.hash) == FIRST
    assert state.reader.find_token(secret_hash("two")) is None

    await must_apply(state, RevokeToken(name="alice", by="owner", at=LATER))

    assert state.reader.find_token(FIRST.hash) is None
    assert list(state.reader.list_tokens()) == [
        replace(FIRST, revoked_at=LATER, revoked_by="owner")
    ]


async def check_name_of_a_token_is_in_use_until_it_is_revoked(state: OpenState) -> None:
    second = replace(FIRST, hash=secret_hash("two"), created_at=LATER)
    revoking = RevokeToken(name="alice", by="owner", at=LATER)
    await must_apply(state, AddToken(token=FIRST))

    taken = await must_refuse(state, AddToken(token=second))
    await must_apply(state, revoking)
    again = await must_refuse(state, revoking)
    missing = await must_refuse(state, RevokeToken(name="bob", by="owner", at=LATER))
    await must_apply(state, AddToken(token=second))

    assert [one.why for one in (taken, again, missing)] == [
        Why.DUPLICATE,
        Why.STATUS,
        Why.MISSING,
    ]
    assert state.reader.find_token(FIRST.hash) is None
    assert state.reader.find_token(second.hash) == second


async def check_link_answers_its_item_once_for_its_approver(state: OpenState) -> None:
    await must_apply(state, _ask(quorum=2), MakeLink(link=LINK))
    other = await must_refuse(state, _answer(by="bob"))
    unknown = await must_refuse(state, _answer(link=secret_hash("guessed")))
    late = await must_refuse(state, replace(_answer(), at=LINK.expires_at))
    assert state.reader.find_link(LINK.id) == LINK

    await must_apply(state, _answer())
    again = await must_refuse(state, _answer(verdict=Verdict.REJECT))

    assert {one.why for one in (other, unknown, late, again)} == {Why.NOT_ALLOWED}
    assert state.reader.find_link(LINK.id) == replace(LINK, used_at=LATER)
    (said,) = state.reader.list_answers(ITEM)
    assert (said.by, said.via, said.verdict) == ("alice", "link", Verdict.APPROVE)


async def check_link_is_made_only_for_who_may_answer_what_waits(state: OpenState) -> None:
    missing = await must_refuse(state, MakeLink(link=LINK))
    await must_apply(state, _ask(approvers=["alice"]))
    stranger = await must_refuse(state, MakeLink(link=replace(LINK, approver="bob")))
    await must_apply(state, MakeLink(link=LINK), _answer())
    decided = await must_refuse(state, MakeLink(link=replace(LINK, id=secret_hash("other"))))

    assert [one.why for one in (missing, stranger, decided)] == [
        Why.MISSING,
        Why.NOT_ALLOWED,
        Why.DECIDED,
    ]


async def check_token_keeps_its_role(state: OpenState) -> None:
    viewer = replace(FIRST, role=Role.VIEWER)
    await must_apply(state, AddToken(token=viewer))

    assert state.reader.find_token(FIRST.hash) == viewer


async def check_browser_session_is_found_by_its_cookie_and_ended_once(state: OpenState) -> None:
    first = BrowserSession(
        id=secret_hash("cookie"),
        secret_hash=secret_hash("secret"),
        person="alice",
        token_hash=FIRST.hash,
        created_at=BEGINNING,
        expires_at=BEGINNING + timedelta(days=1),
    )
    second = replace(first, id=secret_hash("other"), token_hash=None, created_at=LATER)
    stranger = replace(first, id=secret_hash("third"), person="bob")
    for session in (second, first, stranger):
        await must_apply(state, AddBrowserSession(session=session))
    twice = await must_refuse(state, AddBrowserSession(session=first))
    assert list(state.reader.browser_sessions_of("alice")) == [first, second]

    await must_apply(state, EndBrowserSessions(ids=(first.id, "unknown"), at=LATER))
    await must_apply(state, EndBrowserSessions(ids=(first.id,), at=LATER + timedelta(minutes=1)))

    assert twice.why is Why.DUPLICATE
    assert state.reader.find_browser_session(first.id) == replace(first, ended_at=LATER)
    assert state.reader.find_browser_session(secret_hash("unknown")) is None
    assert list(state.reader.browser_sessions_of("alice")) == [second]
    assert list(state.reader.browser_sessions_of("bob")) == [stranger]


def _ask(*, quorum: int = 1, approvers: list[str] | None = None) -> AskPerson:
    item = InboxItem(
        id=ITEM,
        kind=ItemKind.APPROVAL,
        status=ItemStatus.PENDING,
        created_at=BEGINNING,
        subject="nightherd.yaml",
        title="Bash: git push",
        dedupe_key="call",
        hash="abc",
        quorum=quorum,
    )
    terms = {"approvers": approvers or []}
    return AskPerson(asked=(Asked(item=item, texts=InboxTexts(item_id=ITEM, terms=terms)),))


def _answer(
    *, by: str = "alice", link: str = LINK.id, verdict: Verdict = Verdict.APPROVE
) -> AnswerItem:
    return AnswerItem(item_id=ITEM, verdict=verdict, by=by, via="link", at=LATER, link=link)


TOKEN_CHECKS = checks_in(globals())
"""Every check of this module."""
