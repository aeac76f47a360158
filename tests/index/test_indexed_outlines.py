"""Outlines from the index: the same as from the journal, whoever has indexed how much of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mirror.mirror_world import World
from nightherd.errors import JournalError, SchemaVersionError
from nightherd.index.file import FILE, LOCK, VERSION, open_index, open_index_for_reading
from nightherd.index.indexer import EVENTS, Indexer
from nightherd.index.outlines import KEPT_AFTER, IndexedOutlines
from nightherd.index.store import IndexStore
from nightherd.model.index.fold import extend
from nightherd.model.index.outline import EMPTY, Outline
from nightherd.model.journal.event import AssistantEvent, ErrorEvent
from nightherd.testing.state_values import job_id, settle, start, submit


@pytest.fixture
def indexer(world: World) -> Iterator[Indexer]:
    indexer = Indexer(world.root, world.feed, world.journals)
    yield indexer
    indexer.close()


def new_job(world: World, number: int, events: int = 3) -> None:
    world.apply(submit(number), start(number))
    world.open_record(number, session=None)
    say_more(world, number, events)


def say_more(world: World, number: int, events: int) -> None:
    world.say(number, *(AssistantEvent(content=f"moo {n}") for n in range(events)))


def from_journal(world: World, number: int) -> Outline:
    return extend(EMPTY, world.journals.read(job_id(number)))


def kept(world: World, number: int) -> Outline:
    database = open_index_for_reading(world.root)
    assert database is not None
    found = IndexStore(database).find_job(job_id(number)).outline
    database.close()
    return found


def outlines(world: World) -> IndexedOutlines:
    def open_indexer() -> Indexer:
        return Indexer(world.root, world.feed, world.journals)

    return IndexedOutlines(world.root, world.journals, open_indexer)


def make_worthless(path: Path) -> None:
    path.write_bytes(b"this is no database, and nobody should mind" * 200)


def test_every_job_of_the_feed_is_indexed_to_the_end_of_its_journal(
    world: World, indexer: Indexer
) -> None:
    for number in (1, 2, 3):
        new_job(world, number, events=number * 10)

    assert indexer.catch_up() == 3
    assert [kept(world, n) for n in (1, 2, 3)] == [from_journal(world, n) for n in (1, 2, 3)]


def test_a_running_job_is_looked_at_again_without_a_change_of_its_row(
    world: World, indexer: Indexer
) -> None:
    new_job(world, 1)
    indexer.catch_up()
    say_more(world, 1, 5)

    indexer.catch_up()

    assert kept(world, 1) == from_journal(world, 1)


def test_a_job_that_has_ended_is_looked_at_once_more_and_then_no_more(
    world: World, indexer: Indexer
) -> None:
    new_job(world, 1)
    indexer.catch_up()
    say_more(world, 1, 2)
    world.apply(settle(1))

    indexer.catch_up()

    assert kept(world, 1) == from_journal(world, 1)
    assert indexer.due_jobs(10) == []


def test_a_long_journal_is_indexed_in_steps(world: World, indexer: Indexer) -> None:
    new_job(world, 1, events=2 * EVENTS)

    assert indexer.index_job(job_id(1))
    assert EVENTS <= kept(world, 1).last_seq < 2 * EVENTS

    while indexer.index_job(job_id(1)):
        pass
    assert kept(world, 1) == from_journal(world, 1)


def test_two_indexers_at_once_count_nothing_twice(world: World, indexer: Indexer) -> None:
    new_job(world, 1, events=3 * EVENTS)
    other = Indexer(world.root, world.feed, world.journals)
    more = True
    while more:
        more = indexer.index_job(job_id(1)) | other.index_job(job_id(1))
    other.close()

    assert kept(world, 1) == from_journal(world, 1)


def test_a_job_whose_journal_was_deleted_is_forgotten(world: World, indexer: Indexer) -> None:
    new_job(world, 1)
    new_job(world, 2)
    indexer.catch_up()
    world.journals.path(job_id(1)).unlink()

    assert indexer.sweep() == 1
    assert kept(world, 1) == EMPTY
    assert kept(world, 2) != EMPTY


def test_a_journal_that_was_replaced_is_indexed_again(world: World, indexer: Indexer) -> None:
    new_job(world, 1, events=50)
    indexer.catch_up()
    world.journals.path(job_id(1)).unlink()
    say_more(world, 1, 2)
    world.apply(settle(1))

    assert outlines(world).outline(job_id(1)) == from_journal(world, 1)
    indexer.catch_up()
    assert kept(world, 1) == from_journal(world, 1)


def test_an_outline_is_right_without_any_index_and_makes_none_for_a_short_journal(
    world: World,
) -> None:
    new_job(world, 1)

    assert outlines(world).outline(job_id(1)) == from_journal(world, 1)
    assert not (world.root / FILE).exists()


def test_what_is_not_indexed_yet_is_in_the_outline_all_the_same(
    world: World, indexer: Indexer
) -> None:
    new_job(world, 1)
    indexer.catch_up()
    world.say(1, ErrorEvent(message="the gate is open"))

    found = outlines(world).outline(job_id(1))

    assert found == from_journal(world, 1)
    assert found.errors[-1].text == "the gate is open"


def test_asking_for_the_outline_of_a_long_journal_indexes_it(world: World) -> None:
    new_job(world, 1, events=KEPT_AFTER + 100)

    found = outlines(world).outline(job_id(1))

    assert found == from_journal(world, 1) == kept(world, 1)


def test_an_outline_reads_only_what_is_new(world: World, indexer: Indexer) -> None:
    new_job(world, 1, events=500)
    indexer.catch_up()
    path = world.journals.path(job_id(1))
    lines = path.read_bytes().splitlines(keepends=True)
    blank = b" " * (len(lines[10]) - 1) + b"\n"
    path.write_bytes(b"".join([*lines[:10], blank, *lines[11:]]))

    found = outlines(world).outline(job_id(1))

    assert found.counts.events == len(lines)
    assert from_journal(world, 1).counts.events == len(lines) - 1


def test_a_job_without_a_journal_has_an_empty_outline(world: World) -> None:
    world.apply(submit(1))

    assert outlines(world).outline(job_id(1)) == EMPTY


def test_a_damaged_file_is_made_again_and_that_is_said(world: World, indexer: Indexer) -> None:
    new_job(world, 1)
    make_worthless(world.root / FILE)

    assert outlines(world).outline(job_id(1)) == from_journal(world, 1)
    indexer.catch_up()

    assert kept(world, 1) == from_journal(world, 1)
    assert any("damaged" in notice for notice in indexer.notices)


def test_a_file_that_is_damaged_while_it_is_open_is_made_again(
    world: World, indexer: Indexer
) -> None:
    new_job(world, 1, events=300)
    indexer.catch_up()
    indexer.close()
    path = world.root / FILE
    data = bytearray(path.read_bytes())
    data[4096:] = b"\x5a" * (len(data) - 4096)
    path.write_bytes(bytes(data))
    world.apply(settle(1))

    indexer.catch_up()

    assert kept(world, 1) == from_journal(world, 1)
    assert any("damaged" in notice for notice in indexer.notices)


def test_a_file_of_an_older_version_is_made_again_and_that_is_said(
    world: World, indexer: Indexer
) -> None:
    new_job(world, 1)
    opened = open_index(world.root)
    opened.database.execute("DROP TABLE jobs")
    opened.database.execute(f"PRAGMA user_version = {VERSION - 1}")
    opened.database.close()

    indexer.catch_up()

    assert kept(world, 1) == from_journal(world, 1)
    assert any("older nightherd" in notice for notice in indexer.notices)


def test_a_file_of_a_newer_nightherd_is_left_alone(world: World, indexer: Indexer) -> None:
    new_job(world, 1)
    opened = open_index(world.root)
    opened.database.execute(f"PRAGMA user_version = {VERSION + 1}")
    opened.database.close()

    assert outlines(world).outline(job_id(1)) == from_journal(world, 1)
    with pytest.raises(SchemaVersionError, match="newer nightherd"):
        indexer.catch_up()


def test_a_file_that_was_deleted_under_an_open_indexer_is_made_again(
    world: World, indexer: Indexer
) -> None:
    new_job(world, 1)
    indexer.catch_up()
    for path in world.root.glob(f"{FILE}*"):
        path.unlink()

    indexer.catch_up()

    assert kept(world, 1) == from_journal(world, 1)


def test_a_journal_of_a_newer_format_is_reported_and_holds_up_no_other(
    world: World, indexer: Indexer
) -> None:
    new_job(world, 1)
    new_job(world, 2)
    with world.journals.path(job_id(1)).open("ab") as journal:
        journal.write(b'{"v":99,"seq":100,"epoch":1,"type":"system"}\n')

    indexer.catch_up()

    assert kept(world, 2) == from_journal(world, 2)
    assert any(job_id(1) in notice and "upgrade" not in notice for notice in indexer.notices)
    with pytest.raises(JournalError):
        outlines(world).outline(job_id(1))


def test_a_ledger_that_was_made_again_is_followed_again(world: World, indexer: Indexer) -> None:
    for number in (1, 2, 3):
        new_job(world, number)
    indexer.catch_up()
    indexer.close()
    del world.feed.entries[2:]
    say_more(world, 1, 5)

    indexer.catch_up()

    assert kept(world, 1) == from_journal(world, 1)
    assert any("ledger ends before" in notice for notice in indexer.notices)


def test_where_the_index_cannot_be_written_an_outline_is_right_all_the_same(world: World) -> None:
    new_job(world, 1, events=KEPT_AFTER + 100)
    (world.root / LOCK).mkdir()

    assert outlines(world).outline(job_id(1)) == from_journal(world, 1)
    assert not (world.root / FILE).exists()
