"""Search: pages of hits from the index, each shown with a piece of its text from the journal."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from nightherd.db.connection import Database, Value
from nightherd.errors import JournalError, StateFileError
from nightherd.index.file import FILE, discard_index, inode_of, is_damage, open_index_for_reading
from nightherd.index.texts import first_number, time_of
from nightherd.model.ids import JobId
from nightherd.model.index.search import Hit, SearchPage, SearchQuery, Snippet, search_text
from nightherd.model.index.search_terms import Term, match_expression, parse_terms, snippet_of
from nightherd.ports import Journals

LARGEST = 2**62
FIND = (
    "SELECT texts.id, texts.kind, texts.seq, texts.message, texts.body, texts.session_id, texts.agent,"
    " jobs.job_id, jobs.agent, jobs.session_id"
    " FROM (SELECT rowid AS id FROM search WHERE search MATCH ? AND rowid < ? AND rowid >= ?"
    " ORDER BY rowid DESC LIMIT ?) AS found"
    " CROSS JOIN texts ON texts.id = found.id LEFT JOIN jobs ON jobs.number = texts.job"
    " ORDER BY texts.id DESC"
)
COUNT_DUE = (
    "SELECT (SELECT count(*) FROM jobs WHERE noted > looked) FROM follow WHERE follow.change > 0"
)
"""No row before the feed is followed: until then nobody knows which jobs there are."""
NO_INDEX = SearchPage()


def _ignore_notice(notice: str) -> None:
    """Ignore a notice."""


class IndexSearch:
    """Searches the jobs of one state directory; from any thread."""

    def __init__(
        self, root: Path, journals: Journals, report: Callable[[str], None] = _ignore_notice
    ) -> None:
        self._root = root
        self._journals = journals
        self._report = report

    def search(self, query: SearchQuery) -> SearchPage:
        """Return a page of what matches, newest first; `InvalidValueError` for a text without a word.

        A damaged index is removed, so that whoever keeps it makes it again: until then nothing is found.
        """
        terms = parse_terms(query.text)
        inode = inode_of(self._root / FILE)
        try:
            database = open_index_for_reading(self._root)
            if database is None:
                return NO_INDEX
            with closing(database):
                return self._page(database, query, terms)
        except StateFileError as error:
            if not is_damage(error):
                raise
            discard_index(self._root, inode)
            self._report(f"{error.message}; it is made again from the journals")
            return NO_INDEX

    def _page(self, database: Database, query: SearchQuery, terms: tuple[Term, ...]) -> SearchPage:
        before = LARGEST if query.before is None else query.before
        since = 0 if query.since is None else first_number(query.since)
        match = match_expression(terms, query.agent)
        database.execute("BEGIN")  # what is missing, and how much is not indexed, as of one moment
        rows = database.execute(FIND, (match, before, since, query.limit + 1))
        pending = count_due(database)
        database.execute("COMMIT")
        shown = rows[: query.limit]
        hits = [hit for row in shown if (hit := self._hit(row, terms)) is not None]
        has_more = len(rows) > query.limit
        return SearchPage(
            hits=tuple(hits),
            next_before=int(str(shown[-1][0])) if has_more else None,
            pending_jobs=pending,
        )

    def _hit(self, row: tuple[Value, ...], terms: tuple[Term, ...]) -> Hit | None:
        """The hit of a row; None when the event is not there any more."""
        number, kind, seq, message, body, session_id, agent, job_id, job_agent, job_session = row
        at = time_of(int(str(number)))
        if job_id is None:
            return Hit(
                kind=str(kind),
                at=at,
                agent=str(agent),
                session_id=_text(session_id),
                snippet=snippet_of(str(body), terms),
            )
        found = self._snippet(JobId(str(job_id)), int(str(seq)), terms)
        if found is None:
            return None
        return Hit(
            kind=str(kind),
            at=at,
            agent=str(job_agent),
            job_id=str(job_id),
            session_id=_text(job_session),
            seq=int(str(seq)),
            message=None if message is None else int(str(message)),
            snippet=found,
        )

    def _snippet(self, job_id: JobId, seq: int, terms: tuple[Term, ...]) -> Snippet | None:
        with suppress(JournalError):
            for event in self._journals.read(job_id, after=seq - 1):
                text = search_text(event) if event.seq == seq else None
                return None if text is None else snippet_of(text.body, terms)
        return None


def count_due(database: Database) -> int | None:
    """How many jobs have something that is not indexed yet; None in an index that has not begun."""
    rows = database.execute(COUNT_DUE)
    return int(str(rows[0][0])) if rows else None


def _text(value: Value) -> str | None:
    return None if value is None else str(value)
