"""`nightherd search`: what was said and done in all jobs, by words; and making the index again."""

from __future__ import annotations

import click

from nightherd.cli.catch_up import catch_up_index
from nightherd.cli.invocation import (
    Invocation,
    agent_filter,
    before_option,
    json_option,
    page_option,
)
from nightherd.cli.screen.render import PAGE, Screen, neutralise
from nightherd.errors import UsageError
from nightherd.model.index.search import Hit, SearchQuery
from nightherd.model.index.search_terms import parse_terms
from nightherd.model.text import counted
from nightherd.views.search import hit_rows, since_text
from nightherd.wiring.index import discard_index, open_search
from nightherd.wiring.stores import system_clock

MOST = 100


@click.command("search", epilog='Example: nightherd search "connection refused" --since 2d')
@click.argument("text", nargs=-1)
@agent_filter
@click.option(
    "--since",
    metavar="WHEN",
    help="Time to start at: an age such as 2d, or a date and time (local unless it names a zone).",
)
@page_option(PAGE, MOST)
@before_option
@click.option("--rebuild", "is_rebuilt", is_flag=True, help="Make the index again first.")
@json_option
@click.pass_obj
def search(
    invocation: Invocation,
    text: tuple[str, ...],
    agent: str | None,
    since: str | None,
    limit: int,
    before: int | None,
    is_rebuilt: bool,
) -> None:
    """Search prompts, answers, tool calls, errors, summaries and session names.

    Finds what has all words of TEXT, the newest first. In TEXT, "..." is a phrase and word* the beginning of a word.
    """
    screen, now = invocation.screen, system_clock().now()
    state = invocation.state_directory()
    words = " ".join(text)
    if words:
        parse_terms(words)
    elif not is_rebuilt:
        raise UsageError("TEXT is missing", hint='nightherd search "TEXT"')
    if is_rebuilt:
        discard_index(state)
    jobs = catch_up_index(state, screen)
    if not words:
        screen.document("index", {"jobs": jobs}, now) if screen.is_json else screen.say(
            f"indexed {counted(jobs, 'job')}"
        )
        return
    query = SearchQuery(
        text=words,
        agent=agent,
        since=None if since is None else since_text(since, now.astimezone()),
        before=before,
        limit=limit,
    )
    index = open_search(state, lambda notice: screen.say(neutralise(notice)))
    page = index.search(query)
    if page.pending_jobs is None and catch_up_index(state, screen):
        page = index.search(query)  # it was damaged, and is made again
    if screen.is_json:
        beside = {"next_before": page.next_before, "pending_jobs": page.pending_jobs}
        screen.document("hits", hit_rows(page), now, **beside)
        return
    if not page.hits:
        screen.say("nothing found")
    for hit in page.hits:
        _show(hit, screen)
    if page.next_before is not None:
        screen.flush()
        screen.say(f"more: add --before {page.next_before}")


def _show(hit: Hit, screen: Screen) -> None:
    """A hit on two lines: where it is, and its text with the matches in bold."""
    style = screen.out
    where = f"{hit.job_id} event {hit.seq}" if hit.job_id is not None else f"{hit.session_id}"
    kind = hit.kind.replace("_", " ")
    screen.show(f"{style.bold(where)}  {hit.agent}  {kind}  {screen.time(hit.at)}")
    pieces, end = [], 0
    for start, stop in hit.snippet.ranges:
        pieces.append(neutralise(hit.snippet.text[end:start]))
        pieces.append(style.bold(neutralise(hit.snippet.text[start:stop])))
        end = stop
    pieces.append(neutralise(hit.snippet.text[end:]))
    screen.show("  " + "".join(pieces))
