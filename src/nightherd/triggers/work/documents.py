"""What is read of GitHub's documents. Everything else in them is passed over."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from nightherd.decoding import convert, decode_json
from nightherd.model.text import whole_text
from nightherd.model.work.issue import Issue

DocT = TypeVar("DocT")


class LabelDoc(msgspec.Struct):
    """A label."""

    name: str | None = None


class UserDoc(msgspec.Struct):
    """An account: a person's, or an app's."""

    id: int = 0
    login: str = ""
    type: str = ""


class IssueDoc(msgspec.Struct):
    """An issue; a pull request is one too, with a key of its own."""

    number: int
    title: str | None = None
    body: str | None = None
    state: str = "open"
    locked: bool = False
    labels: list[LabelDoc | str] = []
    user: UserDoc | None = None
    pull_request: dict[str, Any] | None = None

    def issue(self, *, has_body: bool = True) -> Issue:
        """Return what is used of it; lists are kept, and need no texts."""
        names = [one if isinstance(one, str) else one.name for one in self.labels]
        return Issue(
            number=self.number,
            title=whole_text(self.title or ""),
            body=whole_text(self.body or "") if has_body else "",
            labels=tuple(whole_text(name) for name in names if name),
            author=self.user.login if self.user is not None else "",
            is_open=self.state == "open",
            is_pull_request=self.pull_request is not None,
            is_locked=self.locked,
        )


class CommentDoc(msgspec.Struct):
    """A comment."""

    id: int
    body: str | None = None
    user: UserDoc | None = None


class ShaDoc(msgspec.Struct):
    """Any git object."""

    sha: str


class TargetDoc(msgspec.Struct):
    """What a ref points to."""

    sha: str
    type: str = ""


class RefDoc(msgspec.Struct):
    """A git ref."""

    object: TargetDoc
    ref: str = ""


class LockNote(msgspec.Struct):
    """What a tag object says about who has an issue."""

    lock: str = ""
    fleet: str = ""
    since: str = ""


class TagDoc(msgspec.Struct):
    """An annotated tag."""

    message: str = ""

    def note(self) -> LockNote:
        """Return whose it is; nobody's that is known, if somebody else made the tag."""
        try:
            return convert(json.loads(self.message), LockNote)
        except (ValueError, RecursionError):
            return LockNote()


def read_document(body: bytes, kind: type[DocT]) -> DocT:
    """Return the document, or raise `MsgspecError` or `ValueError`."""
    try:
        return decode_json(body, kind)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # It may hold half a character, which others take; what is used of it is made whole.
        return convert(json.loads(body), kind)
