"""Search: what is in the journals is found, newest first, in pages; and nothing that is not there any more."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.test_indexed_outlines import make_worthless
from mirror.mirror_world import World
from nightherd.db.connection import Database, open_for_writing
from nightherd.index.file import FILE, VERSION, discard_index, open_index, open_index_for_reading
from nightherd.index.indexer import Indexer
from nightherd.index.search import IndexSearch
from nightherd.index.texts import time_of
from nightherd.model.index.search import Hit, SearchPage, SearchQuery
from nightherd.model.index.search_terms import match_expression, parse_terms, ranges_in
from nightherd.model.journal.event import AssistantEvent, ToolResultEvent, ToolUseEvent, describe
from nightherd.model.journal.system import Header
from nightherd.model.sessions.session import Session
from nightherd.testing.state_values import BEGINNING, job_id, start, submit


@pytest.fixture
def indexer(world: World) -> Iterator[Indexer]:
    indexer = Indexer(world.root, world.feed, world.journals)
    yield indexer
    indexer.close()


def new_job(world: World, number: int, *texts: str, agent: str = "grazer") -> None:
    """A job of which these are the answers, a second apart."""
    world.apply(submit(number), start(number))
    header = Header(
        id=job_id(number),
        agent=agent,
        trigger_type="manual",
        created_at=BEGINNING,
        session_id="s-1",
    )
    world.say(number, describe(header))
    for message, text in enumerate(texts, 1):
        world.clock.advance(timedelta(seconds=1))
        world.say(number, AssistantEvent(content=text, message=message, end=True))


def search(world: World, text: str, **options: object) -> SearchPage:
    query = msgspec.convert({"text": text, **options}, SearchQuery)
    return IndexSearch(world.root, world.journals).search(query)


def marked(hit: Hit) -> list[str]:
    return [hit.snippet.text[start:end] for start, end in hit.snippet.ranges]


def counts(world: World) -> tuple[int, int]:
    """How many texts there are, and how many of them have words."""
    database = open_index_for_reading(world.root)
    assert database is not None
    ((texts,),) = database.execute("SELECT count(*) FROM texts")
    ((words,),) = database.execute("SELECT count(*) FROM search")
    database.close()
    return int(str(texts)), int(str(words))


def test_a_hit_says_where_it_is_and_what_matched(world: World, indexer: Indexer) -> None:
    new_job(world, 1, "The grass is green.", "The hay is dry.")
    indexer.catch_up()

    (hit,) = search(world, "HAY").hits

    assert (hit.job_id, hit.seq, hit.message, hit.kind) == (job_id(1), 3, 2, "answer")
    assert (hit.agent, hit.session_id) == ("grazer", "s-1")
    assert hit.snippet.text == "The hay is dry."
    assert marked(hit) == ["hay"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("green", 2),
        ("green hay", 1),
        ('"green grass"', 1),
        ('"grass green"', 0),
        ("gre*", 2),
        ("gre", 0),
        ("the* OR", 0),
        ('hay" OR "grass', 0),
        ("(green", 2),
        ("body:green", 0),
    ],
)
def test_words_phrases_and_beginnings_are_found_and_operators_are_words(
    world: World, indexer: Indexer, text: str, found: int
) -> None:
    new_job(world, 1, "The green grass.", "Hay is not green; body of water.")
    indexer.catch_up()

    assert len(search(world, text).hits) == found


def test_tool_calls_and_their_results_are_found(world: World, indexer: Indexer) -> None:
    new_job(world, 1)
    world.say(
        1,
        ToolUseEvent(tool_name="Bash", tool_use_id="a", input={"command": "make fences"}),
        ToolResultEvent(tool_use_id="a", result="fences: 3 broken"),
    )
    indexer.catch_up()

    assert [hit.kind for hit in search(world, "fences").hits] == ["tool_result", "tool_input"]


def test_a_text_that_is_kept_beside_the_journal_is_found(world: World, indexer: Indexer) -> None:
    new_job(world, 1)
    world.say(1, ToolResultEvent(tool_use_id="a", result="needle " + "hay " * 40_000))
    indexer.catch_up()

    (hit,) = search(world, "needle").hits
    assert marked(hit) == ["needle"]


def test_pages_are_newest_first_across_jobs_and_nothing_comes_twice(
    world: World, indexer: Indexer
) -> None:
    for number in (1, 2, 3):
        new_job(world, number, *(f"moo {number} {n}" for n in range(7)))
    indexer.catch_up()

    found: list[Hit] = []
    before = None
    while True:
        page = search(world, "moo", limit=4, before=before)
        found += page.hits
        before = page.next_before
        if before is None:
            break
        assert before < 2**53
    assert len({(hit.job_id, hit.seq) for hit in found}) == len(found) == 21
    assert [hit.at for hit in found] == sorted((hit.at for hit in found), reverse=True)
    assert [hit.job_id for hit in found] == [job_id(n) for n in (3, 2, 1) for _ in range(7)]


def test_hits_are_narrowed_by_agent_and_time(world: World, indexer: Indexer) -> None:
    new_job(world, 1, "moo", agent="code")
    new_job(world, 2, "moo", "moo again", agent="code-review")
    indexer.catch_up()

    assert [hit.agent for hit in search(world, "moo", agent="code").hits] == ["code"]
    assert len(search(world, "moo", agent="code-review").hits) == 2
    assert search(world, "moo", agent="review").hits == ()
    newest = search(world, "moo").hits[0].at
    assert len(search(world, "moo", since=newest).hits) == 1


def test_a_session_is_found_by_its_name_until_it_is_cleaned_up(
    world: World, indexer: Indexer
) -> None:
    world.apply(submit(1))
    session = world.rows.get(Session, submit(1).session.id)
    assert session is not None
    world.put(msgspec.structs.replace(session, name="Summer pasture"))
    indexer.catch_up()
    (hit,) = search(world, "pasture").hits
    assert (hit.kind, hit.session_id, hit.job_id) == ("session", session.id, None)
    assert hit.snippet.text == "Summer pasture"

    world.put(msgspec.structs.replace(session, name="Winter stable"))
    indexer.catch_up()
    assert search(world, "pasture").hits == ()
    assert len(search(world, "stable").hits) == 1

    world.put(msgspec.structs.replace(session, name="Winter stable", removed_at=BEGINNING))
    indexer.catch_up()
    assert search(world, "stable").hits == ()


def test_what_was_deleted_is_found_no_more(world: World, indexer: Indexer) -> None:
    new_job(world, 1, "moo one")
    new_job(world, 2, "moo two")
    indexer.catch_up()
    assert counts(world) == (2, 2)
    world.journals.path(job_id(1)).unlink()

    assert [hit.job_id for hit in search(world, "moo").hits] == [job_id(2)]
    indexer.sweep()
    assert counts(world) == (1, 1)


def test_texts_of_the_same_instant_all_have_a_place(world: World, indexer: Indexer) -> None:
    frozen = World(world.root.parent / "frozen")
    frozen.clock._step = timedelta()
    for number in (1, 2):
        frozen.apply(submit(number), start(number))
        frozen.say(number, *(AssistantEvent(content="moo") for _ in range(3_000)))
    other = Indexer(frozen.root, frozen.feed, frozen.journals)
    other.catch_up()
    other.close()

    assert counts(frozen) == (6_000, 6_000)


def test_an_index_that_is_made_again_finds_the_same(world: World, indexer: Indexer) -> None:
    for number in (1, 2, 3):
        new_job(world, number, "moo", "baa")
    indexer.catch_up()
    before = search(world, "moo")

    discard_index(world.root)
    indexer.catch_up()

    assert search(world, "moo") == before
    assert before.pending_jobs == 0


def test_a_damaged_index_is_removed_by_who_searches_and_made_again_by_who_indexes(
    world: World, indexer: Indexer
) -> None:
    new_job(world, 1, "moo")
    make_worthless(world.root / FILE)

    assert search(world, "moo") == SearchPage()
    indexer.catch_up()
    assert len(search(world, "moo").hits) == 1


def test_damaged_words_are_noticed_by_who_searches_and_that_is_said(
    world: World, indexer: Indexer
) -> None:
    new_job(world, 1, "moo")
    indexer.catch_up()
    indexer.close()
    opened = open_index(world.root)
    opened.database.execute("DELETE FROM search_data WHERE id > 10")
    opened.database.close()
    said: list[str] = []

    page = IndexSearch(world.root, world.journals, said.append).search(SearchQuery(text="moo"))
    indexer.catch_up()

    assert page == SearchPage()
    assert len(said) == 1
    assert "damaged" in said[0]
    assert len(search(world, "moo").hits) == 1


def test_an_index_of_an_older_version_is_made_again(world: World, indexer: Indexer) -> None:
    new_job(world, 1, "moo")
    opened = open_index(world.root)
    opened.database.execute("DROP TABLE search")
    opened.database.execute(f"PRAGMA user_version = {VERSION - 1}")
    opened.database.close()
    assert search(world, "moo") == SearchPage()

    indexer.catch_up()

    assert len(search(world, "moo").hits) == 1
    assert any("older nightherd" in notice for notice in indexer.notices)


def test_without_an_index_nothing_is_found_and_that_is_said(world: World) -> None:
    new_job(world, 1, "moo")

    assert search(world, "moo") == SearchPage(hits=(), next_before=None, pending_jobs=None)
    assert not (world.root / FILE).exists()


def test_an_index_that_has_not_begun_yet_does_not_say_that_there_is_nothing(
    world: World, indexer: Indexer
) -> None:
    new_job(world, 1, "moo")
    assert indexer.due_jobs(1) == []
    assert (world.root / FILE).exists()

    assert search(world, "moo") == SearchPage(hits=(), next_before=None, pending_jobs=None)
    indexer.follow_changes()
    assert search(world, "moo").pending_jobs == 1


def test_the_number_of_a_text_is_its_time(world: World, indexer: Indexer) -> None:
    new_job(world, 1, "moo")
    indexer.catch_up()
    event = world.journals.last(job_id(1), 1)[0]
    assert event.timestamp is not None

    (hit,) = search(world, "moo").hits

    assert timedelta() <= event.timestamp - hit.at < timedelta(milliseconds=1)
    assert time_of(1 << 11) > time_of(0)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A full-text index with nothing in it."""
    root = tmp_path_factory.mktemp("words")
    open_index(root).database.close()
    database = open_for_writing(root / FILE)
    yield database
    database.close()


LETTERS = st.text(alphabet='abAB12_-."*()é ÉßжЖ日本\n', max_size=40)


@given(LETTERS, LETTERS)
def test_a_text_that_the_database_finds_has_marks_for_all_terms_and_no_other_has(
    words: Database, text: str, query: str
) -> None:
    try:
        terms = parse_terms(query)
    except ValueError:
        return
    words.execute("BEGIN")
    words.execute("INSERT INTO search (rowid, body, agent) VALUES (1, ?, 'x')", (text,))
    found = words.execute(
        "SELECT rowid FROM search WHERE search MATCH ?", (match_expression(terms),)
    )
    words.execute("ROLLBACK")

    assert bool(found) == all(ranges_in(text, [term]) for term in terms)
