"""Addresses of repositories: what they lead to, without their credentials."""

from __future__ import annotations

import pytest

from nightherd.errors import InvalidValueError
from nightherd.model.workspaces.repository import (
    Repository,
    is_same_repository,
    parse_repository,
    without_credentials,
)


@pytest.mark.parametrize(
    ("text", "repository"),
    [
        ("owner/name", Repository(url="https://github.com/owner/name.git")),
        ("owner/name.js", Repository(url="https://github.com/owner/name.js.git")),
        ("https://h.example/a%20b.git", Repository(url="https://h.example/a%20b.git")),
        ("https://h.example:8443/x/", Repository(url="https://h.example:8443/x/")),
        ("http://[::1]:80/x", Repository(url="http://[::1]:80/x")),
        ("https://me:a%2Fb@h/x", Repository(url="https://h/x", username="me", password="a/b")),
        ("https://:word@h/x", Repository(url="https://h/x", password="word")),
        ("https://me@h/x", Repository(url="https://h/x", username="me")),
        (
            "https://glpat-1234@gitlab.example/x",
            Repository(
                url="https://gitlab.example/x", username="x-access-token", password="glpat-1234"
            ),
        ),
        ("ssh://git@h/x", Repository(url="ssh://git@h/x")),
        ("git@h:path/to/x", Repository(url="git@h:path/to/x")),
        ("git://h/x", Repository(url="git://h/x")),
        ("/srv/x y", Repository(url="/srv/x y")),
    ],
)
def test_an_address_is_read(text: str, repository: Repository) -> None:
    parsed = parse_repository(text)

    assert parsed == repository
    assert repository.password is None or repository.password not in repr(parsed)


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "a/b/c", "./x", "../x", "my project", "owner/..", "note: look here"),
        *("ext::sh -c x", "-x/y", "--upload-pack=x", "git@-oProxyCommand=x:y", "https://-x/y"),
        *("ftp://h/x", "https://h", "https:///x", "file://host/x", "https://h/x?token=y"),
        *("https://h:port/x", "https://[::1/x", "/x\n", "https://h/x y"),
    ],
)
def test_any_other_text_names_nothing_that_is_cloned(text: str) -> None:
    assert parse_repository(text) is None


@pytest.mark.parametrize("text", ["ssh://me:word@h/x", "https://me:a%00b@h/x", "https://a%0a@h/x"])
def test_credentials_that_cannot_work_are_refused(text: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        parse_repository(text)

    assert "word" not in caught.value.message.replace("password", "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:word@h/x", "https://h/x"),
        ("HTTPS://me:word@h/x", "https://h/x"),
        ("ssh://git:word@h/x", "ssh://h/x"),
        ("ssh://git@h/x", "ssh://git@h/x"),
        ("ftp://me:word@h/x", "ftp://h/x"),
        ("https://me:word@h/x?y=z", "https://h/x?y=z"),
        ("see https://me:word@h/x and more", "see https://h/x and more"),
        ("owner/name", "owner/name"),
        ("a text", "a text"),
    ],
)
def test_people_see_no_credentials(text: str, shown: str) -> None:
    assert without_credentials(text) == shown


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("git@github.com:a/b.git", "https://github.com/a/b", True),
        ("https://me:word@GitHub.com/a/b/", "https://github.com/a/b.git", True),
        ("ssh://git@h:22/a", "https://h:443/a", True),
        ("/srv/x/", "file:///srv/x.git", True),
        ("https://h/a", "https://h/b", False),
        ("https://h:1/a", "https://h:2/a", False),
        ("https://h/a", "https://other/a", False),
        ("https://h:port/a", "https://h/a", False),
    ],
)
def test_two_spellings_of_one_place_are_the_same(one: str, other: str, is_same: bool) -> None:
    assert is_same_repository(one, other) is is_same
    assert is_same_repository(other, one) is is_same
