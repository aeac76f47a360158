"""Deciding about tokens and answer links."""

from __future__ import annotations

from msgspec.structs import replace

from nightherd.model.change import Answer, Applied, Refused, Why
from nightherd.model.decisions.rows import Rows
from nightherd.model.inbox.item import InboxItem, InboxTexts, decided_text
from nightherd.model.inbox.token import AddToken, MakeLink, RevokeToken, Token
from nightherd.model.push.subscription import EndPushSubscriptions, PushEnd


def add(change: AddToken, rows: Rows) -> Answer:
    """Add the token, unless one of that name is in use."""
    known = rows.get(Token, change.token.name)
    if known is not None and known.revoked_at is None:
        message = f"there is a token {known.name!r} already; revoke it first to replace it"
        return Refused(why=Why.DUPLICATE, message=message)
    return Applied(rows=(change.token,))


def revoke(change: RevokeToken, rows: Rows) -> Answer:
    """Revoke the token; once. The devices of its owner get no more pushes."""
    known = rows.get(Token, change.name)
    if known is None:
        return Refused(why=Why.MISSING, message=f"there is no token {change.name!r}")
    if known.revoked_at is not None:
        return Refused(why=Why.STATUS, message=f"the token {change.name!r} is revoked already")
    ending = EndPushSubscriptions(at=change.at, reason=PushEnd.REVOKED, token_hash=known.hash)
    revoked = replace(known, revoked_at=change.at, revoked_by=change.by)
    return Applied(rows=(revoked,), then=(ending,))


def make_link(change: MakeLink, rows: Rows) -> Answer:
    """Add the link, if its item waits and its approver may answer."""
    link = change.link
    item, texts = rows.get(InboxItem, link.item_id), rows.get(InboxTexts, link.item_id)
    if item is None or texts is None:
        return Refused(why=Why.MISSING, message=f"there is no inbox item {link.item_id}")
    if not item.is_pending:
        return Refused(why=Why.DECIDED, message=decided_text(item))
    if texts.approvers and link.approver not in texts.approvers:
        return Refused(why=Why.NOT_ALLOWED, message=f"{link.approver} may not answer {item.id}")
    return Applied(rows=(link,))
