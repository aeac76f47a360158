"""A repository with an issue that schedules may take."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nightherd.testing.github_api import GithubApi


@pytest.fixture
def api() -> Iterator[GithubApi]:
    with GithubApi() as api:
        api.repository.open_issue(7, "The fence is broken", "ready", "bug")
        yield api
