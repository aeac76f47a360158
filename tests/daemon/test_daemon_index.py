"""A daemon indexes what its jobs say while they run, and what was said before it was started."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from daemon.pasture import QUIET, Pasture, wait_for
from daemon.test_daemon_process import began, hand_in
from nightherd.model.index.search import SearchQuery
from nightherd.wiring.index import open_search

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MakePasture = Callable[..., Pasture]


def hits(pasture: Pasture, text: str) -> list[str]:
    page = open_search(pasture.state, print).search(SearchQuery(text=text))
    return [hit.kind for hit in page.hits]


def test_a_daemon_indexes_running_jobs_and_goes_on_after_it_was_killed(
    make_pasture: MakePasture,
) -> None:
    pasture = make_pasture(QUIET)
    hand_in(pasture)
    trial = pasture.daemon()
    wait_for(lambda: began(pasture), "the job")
    wait_for(lambda: hits(pasture, '"touch began"') == ["tool_input"], "the call of a running job")
    trial.send(signal.SIGKILL)
    trial.wait()
    (pasture.folder / "go").touch()

    second = pasture.daemon()
    wait_for(lambda: "answer" in hits(pasture, "done"), "the answer")
    second.send(signal.SIGTERM)

    assert second.wait().said[-1] == "done"
    assert hits(pasture, "done").count("answer") == 1
