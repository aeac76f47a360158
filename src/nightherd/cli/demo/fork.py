"""The demo's fork: two versions of one session, each in a git worktree of its own, compared; one is merged."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from nightherd.cli.demo.context import DemoContext
from nightherd.cli.demo.stage import BANNER, REPOSITORY, checkout_state, files_in
from nightherd.cli.jobs.command import Finished
from nightherd.engine.operations.fork import AtMessage
from nightherd.engine.operations.requests import ForkOf, Submit
from nightherd.errors import NightherdError
from nightherd.model.ids import SessionId

COPYWRITER = "copywriter"
FIRST, SECOND = "20 % off everything", "Buy two, get one free"
FORKED_AT = 5
"""The message that ends what both have in common: the prompt, and two calls with their results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forked:
    """The jobs of both versions, and what each of them changed."""

    jobs: tuple[Finished, ...] = ()
    diffs: tuple[str, ...] = ()


def fork_and_merge(demo: DemoContext, git: str) -> Forked:
    """Run a job in a worktree, fork its session at an earlier message, show both diffs, and merge the second."""
    untouched = checkout_state(demo.place, git, demo.environ)
    demo.head(f"nightherd run {COPYWRITER} -p {shlex.quote(FIRST)}")
    first = _run(demo, Submit(agent=COPYWRITER, prompt=FIRST))
    session = _session_of(first)
    fork = f"nightherd session fork {session} --at-message {FORKED_AT} --run"
    demo.head(f"{fork} -p {shlex.quote(SECOND)}")
    origin = ForkOf(session_id=session, at=AtMessage(number=FORKED_AT))
    second = _run(demo, Submit(agent=COPYWRITER, prompt=SECOND, session=origin))
    diffs = (_diff_of_first(demo, first), _diff_of_second(demo, second))
    _compare(demo, session, _session_of(second))
    demo.head(f"ls {REPOSITORY}: your own checkout is as it was")
    demo.show("  ".join(files_in(demo.place)))
    if checkout_state(demo.place, git, demo.environ) != untouched:
        raise NightherdError("a job in a worktree of its own changed the checkout")
    _merge(demo, second)
    return Forked(jobs=(first, second), diffs=diffs)


def _run(demo: DemoContext, request: Submit) -> Finished:
    finished = demo.run(request)
    if not all(demo.outcomes(finished)):
        raise NightherdError(f"a tool call of the demo's job {finished.job.id} failed")
    return finished


def _session_of(finished: Finished) -> SessionId:
    if finished.job.session_id is None:
        raise NightherdError(f"the demo's job {finished.job.id} has no session")
    return finished.job.session_id


def _diff_of_first(demo: DemoContext, finished: Finished) -> str:
    lines = demo.command("jobs", "diff", finished.job.id)
    demo.show_diff(lines)
    if _banner(FIRST) not in _added(lines) or "+++ b/test_banner.py" not in lines:
        raise NightherdError(f"the first version is wrong: {_added(lines)}")
    return _text(lines)


def _diff_of_second(demo: DemoContext, finished: Finished) -> str:
    """Show what the fork changed. That is one line only if it began with the files of the message it was forked at."""
    note = f": it began with the files of message {FORKED_AT}"
    lines = demo.command("jobs", "diff", finished.job.id, note=note)
    demo.show_diff(lines)
    if _added(lines) != [_banner(SECOND)]:
        raise NightherdError(f"the second version is wrong: {_added(lines)}")
    return _text(lines)


def _compare(demo: DemoContext, first: SessionId, second: SessionId) -> None:
    lines = demo.command("session", "compare", first, second)
    demo.show(_text(lines).rstrip())
    differing = [line for line in lines if line.startswith(f" {BANNER} ")]
    if f"the same {FORKED_AT} messages" not in lines[0] or not differing:
        raise NightherdError("the two sessions do not differ as they should")


def _merge(demo: DemoContext, finished: Finished) -> None:
    demo.show(_text(demo.command("jobs", "merge", finished.job.id)).rstrip())
    demo.head(f"cat {REPOSITORY}/{BANNER}")
    text = (demo.place / REPOSITORY / BANNER).read_text(encoding="utf-8")
    demo.show(text.rstrip())
    if text != f"{_banner(SECOND)}\n":
        raise NightherdError(f"something else was merged: {text}")


def _banner(text: str) -> str:
    return f'BANNER = "{text}"'


def _added(lines: list[str]) -> list[str]:
    """Return the lines that a patch adds."""
    return [line[1:] for line in lines if line.startswith("+") and not line.startswith("+++ ")]


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
