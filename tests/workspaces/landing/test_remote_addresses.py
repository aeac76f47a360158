"""Addresses of remotes: which are on this machine, and the pages where pull requests are opened."""

from __future__ import annotations

import pytest

from nightherd.workspaces.landing.addresses import is_local, pull_request_url

BRANCH = "nightherd/coder/job-1"

PAGES = {
    "https://github.com/acme/rocket.git": "https://github.com/acme/rocket/compare/main...nightherd/coder/job-1?expand=1",
    "https://jo:secret@github.com/acme/rocket": "https://github.com/acme/rocket/compare/main...nightherd/coder/job-1?expand=1",
    "git@github.com:acme/rocket.git": "https://github.com/acme/rocket/compare/main...nightherd/coder/job-1?expand=1",
    "ssh://git@github.acme.org:2222/acme/rocket.git": "https://github.acme.org/acme/rocket/compare/main...nightherd/coder/job-1?expand=1",
    "git@gitlab.com:acme/deep/rocket.git": "https://gitlab.com/acme/deep/rocket/-/merge_requests/new?"
    "merge_request%5Bsource_branch%5D=nightherd%2Fcoder%2Fjob-1&merge_request%5Btarget_branch%5D=main",
    "https://gitlab.acme.org:8443/acme/rocket": "https://gitlab.acme.org:8443/acme/rocket/-/merge_requests/new?"
    "merge_request%5Bsource_branch%5D=nightherd%2Fcoder%2Fjob-1&merge_request%5Btarget_branch%5D=main",
    "git@bitbucket.org:acme/rocket.git": "https://bitbucket.org/acme/rocket/pull-requests/new?source=nightherd%2Fcoder%2Fjob-1&dest=main",
    "https://codeberg.org/acme/rocket.git": "https://codeberg.org/acme/rocket/compare/main...nightherd/coder/job-1",
    "ssh://git@gitea.acme.org/acme/rocket.git": "https://gitea.acme.org/acme/rocket/compare/main...nightherd/coder/job-1",
    "https://forgejo.acme.org/acme/rocket": "https://forgejo.acme.org/acme/rocket/compare/main...nightherd/coder/job-1",
    "https://example.org/acme/rocket.git": None,
    "https://notgithub.com/acme/rocket.git": None,
    "https://github.com/": None,
    "file:///srv/github/rocket.git": None,
    "/srv/github.com/rocket.git": None,
    "../github.com:x": None,
}


@pytest.mark.parametrize("address", PAGES)
def test_page_of_a_pull_request(address: str) -> None:
    assert pull_request_url(address, BRANCH, "main") == PAGES[address]


def test_page_of_a_pull_request_when_the_base_is_not_known() -> None:
    assert (
        pull_request_url("git@github.com:a/b", BRANCH, None)
        == f"https://github.com/a/b/compare/{BRANCH}?expand=1"
    )
    assert (
        pull_request_url("git@gitea.com:a/b", BRANCH, None)
        == f"https://gitea.com/a/b/compare/{BRANCH}"
    )
    gitlab = pull_request_url("git@gitlab.com:a/b", BRANCH, None)
    assert gitlab is not None
    assert "target_branch" not in gitlab


def test_directories_of_this_machine_are_known() -> None:
    assert [is_local(address) for address in ("/srv/x.git", "../x.git", "file:///x.git", "x")] == [
        True
    ] * 4
    assert [is_local(address) for address in ("https://h/x", "git@h:x", "h:x", "ssh://h/x")] == [
        False
    ] * 4
