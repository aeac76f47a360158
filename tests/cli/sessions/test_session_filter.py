"""`session list QUERY`: the language of `jobs list`, and statuses as they are now, recorded or not."""

from __future__ import annotations

from cli.sessions.ranch import Ranch


def listed(ranch: Ranch, *words: str) -> list[str]:
    return [row["id"] for row in ranch.data("session", "list", *words)]


def test_a_query_narrows_the_list(ranch: Ranch) -> None:
    memory = ranch.run("memory", "-p", "first")["session_id"]
    fresh = ranch.run("fresh", "-p", "x")["session_id"]
    ranch.cli("session", "rename", memory, "the parser")

    assert listed(ranch, "agent:memory,nobody") == [memory]
    assert listed(ranch, "mode:fresh_per_job", "since:1d") == [fresh]
    assert listed(ranch, "cost:>0") == [memory]
    assert listed(ranch, "PARSER") == [memory]
    assert listed(ranch, "status:completed,paused") == [fresh, memory]
    assert listed(ranch, "agent:memory", "--agent", "fresh") == []


def test_a_session_that_expired_is_found_before_that_is_recorded(ranch: Ranch) -> None:
    waiting = ranch.run("waiting")["session_id"]
    memory = ranch.run("memory", "-p", "first")["session_id"]

    assert listed(ranch, "status:expired") == [waiting]
    assert listed(ranch, "status:paused") == [memory]
    assert listed(ranch, "status:paused,expired") == [memory, waiting]
    assert listed(ranch, "status:expired", "agent:memory") == []


def test_the_next_page_repeats_the_query(ranch: Ranch) -> None:
    for number in range(3):
        ranch.run("fresh", "-p", str(number))

    first = ranch.cli("session", "list", "agent:fresh", "--limit", "2")

    assert "more: nightherd session list agent:fresh --limit 2 --before" in first.err


def test_a_mistake_is_named_with_its_column(ranch: Ranch) -> None:
    ranch.run("fresh")

    refused = ranch.cli("session", "list", "agent:fresh", "trigger:manual")

    assert refused.code == 2
    assert "column 13 of the filter: 'trigger' is no filter" in refused.err
