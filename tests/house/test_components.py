"""The rule for missing components: skip out loud at home, fail where CI is set."""

from __future__ import annotations

import pytest

from components import Components

NOWHERE = "no-program-has-this-name"


def test_missing_program_skips_at_home() -> None:
    with pytest.raises(pytest.skip.Exception, match=f"missing component: {NOWHERE}"):
        Components(is_ci=False).program(NOWHERE)


def test_missing_program_fails_where_ci_is_set() -> None:
    with pytest.raises(pytest.fail.Exception, match=f"missing component: {NOWHERE}"):
        Components(is_ci=True).program(NOWHERE)


def test_program_that_is_here_is_named_by_its_path() -> None:
    assert Components(is_ci=True).program("sh").endswith("/sh")
