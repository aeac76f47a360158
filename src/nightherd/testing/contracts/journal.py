"""What every implementation of the `Journals` port has to do, as checks that take a fresh one.

Run each of `JOURNAL_CONTRACT` on your own, for instance with pytest:

    @pytest.mark.parametrize("check", JOURNAL_CONTRACT, ids=lambda check: check.__name__)
    def test_journals_keep_the_contract(check, tmp_path):
        check(MyJournals(tmp_path))

A check returns, or fails by assertion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from nightherd.errors import FencedError, InvalidValueError, NightherdError, RefusedError
from nightherd.model.ids import ExecutionId, JobId, generate_execution_id
from nightherd.model.journal.event import (
    VERSION,
    AssistantEvent,
    ErrorEvent,
    Event,
    SystemEvent,
    ToolResultEvent,
    ToolUseEvent,
    describe,
)
from nightherd.model.journal.system import Init, SystemSubtype
from nightherd.ports import Journal, Journals

JOB = JobId("job-2026-01-02-abc123")
OTHER_JOB = JobId("job-2026-01-02-xyz789")
LARGE = "0123456789abcdef" * 5_000


def begin(journals: Journals, *, epoch: int = 1, job_id: JobId = JOB) -> Journal:
    """The journal of a job, opened for its execution of that epoch."""
    return journals.open(job_id, epoch=epoch, execution=execution_of(epoch, job_id))


def execution_of(epoch: int, job_id: JobId = JOB) -> ExecutionId:
    """The execution that an epoch of the job is."""
    return generate_execution_id(job_id, epoch)


def say(text: str) -> AssistantEvent:
    """An event that says this."""
    return AssistantEvent(content=text)


def texts(events: Iterator[Event] | list[Event]) -> list[str | None]:
    """What the assistant said in these events."""
    return [event.content for event in events if isinstance(event, AssistantEvent)]


def raised(kind: type[NightherdError], action: Callable[[], object]) -> bool:
    """Whether the action fails with that kind of error."""
    try:
        action()
    except kind:
        return True
    return False


def check_a_job_without_a_journal_has_no_events(journals: Journals) -> None:
    """Reading what is not there is no error."""
    assert list(journals.read(JOB)) == []
    assert list(journals.last(JOB, 5)) == []
    assert journals.examine(JOB).events == 0


def check_events_come_back_as_append_returned_them(journals: Journals) -> None:
    """Every type of event, in order, equal to what `append` gave back."""
    journal = begin(journals)
    events: list[Event] = [
        describe(Init(runtime="scripted"), "ready"),
        AssistantEvent(content="hello", thinking="hm", message=1, index=0, end=True, turn=1),
        ToolUseEvent(tool_name="Bash", tool_use_id="t1", input={"command": "ls"}, message=2),
        ToolResultEvent(tool_use_id="t1", result=["a", {"b": None}], success=True, message=3),
        ErrorEvent(message="it broke", code="broken", extra={"deep": {"er": [1.5, -0.0, 2**70]}}),
    ]

    written = [journal.append(event) for event in events]

    assert list(journals.read(JOB)) == written
    assert [type(event) for event in written] == [type(event) for event in events]
    assert isinstance(written[0], SystemEvent)
    assert written[0].subtype is SystemSubtype.INIT


def check_append_stamps_what_it_writes(journals: Journals) -> None:
    """Version, number, epoch, time and execution are the journal's to say."""
    journal = begin(journals, epoch=3)

    first = journal.append(AssistantEvent(content="a", seq=99, epoch=99, v=99))
    second = journal.append(say("b"))

    assert (first.v, first.seq, first.epoch, first.execution) == (VERSION, 1, 3, execution_of(3))
    assert (second.seq, journal.last_seq) == (2, 2)
    assert first.timestamp is not None
    assert first.timestamp.utcoffset() is not None


def check_reading_can_begin_after_any_event(journals: Journals) -> None:
    """`after` leaves out that many; beyond the end there is nothing."""
    journal = begin(journals)
    for number in range(1, 11):
        journal.append(say(str(number)))

    assert texts(journals.read(JOB, after=7)) == ["8", "9", "10"]
    assert texts(journals.read(JOB, after=10)) == []
    assert texts(journals.read(JOB, after=999)) == []


def check_the_last_events_are_the_end_of_all_events(journals: Journals) -> None:
    """Fewer, exactly as many, and more than there are."""
    journal = begin(journals)
    for number in range(1, 6):
        journal.append(say(str(number)))

    assert texts(list(journals.last(JOB, 2))) == ["4", "5"]
    assert texts(list(journals.last(JOB, 5))) == ["1", "2", "3", "4", "5"]
    assert texts(list(journals.last(JOB, 50))) == ["1", "2", "3", "4", "5"]
    assert list(journals.last(JOB, 0)) == []


def check_the_next_execution_goes_on_counting(journals: Journals) -> None:
    """Numbers have no gap where one execution follows another."""
    first = begin(journals, epoch=1)
    first.append(say("one"))
    first.close()

    second = begin(journals, epoch=2)
    written = second.append(say("two"))

    assert (written.seq, written.epoch) == (2, 2)
    assert texts(journals.read(JOB)) == ["one", "two"]


def check_a_writer_that_lost_the_job_is_told_and_unheard(journals: Journals) -> None:
    """What was acknowledged stays, what came after a later epoch never counts."""
    zombie = begin(journals, epoch=1)
    zombie.append(say("before"))
    owner = begin(journals, epoch=2)
    zombie.append(say("still mine"))
    owner.append(say("mine now"))

    assert raised(FencedError, lambda: zombie.append(say("too late")))
    assert raised(FencedError, lambda: zombie.append(say("again too late")))
    assert raised(FencedError, zombie.sync)
    owner.append(say("and still"))

    assert texts(journals.read(JOB)) == ["before", "still mine", "mine now", "and still"]
    assert [event.seq for event in journals.read(JOB)] == [1, 2, 3, 4]
    assert texts(list(journals.last(JOB, 3))) == ["still mine", "mine now", "and still"]


def check_an_epoch_that_is_over_cannot_be_opened(journals: Journals) -> None:
    """A later epoch has written: an earlier one has no business here."""
    begin(journals, epoch=5).append(say("mine"))

    assert raised(FencedError, lambda: begin(journals, epoch=4))
    assert begin(journals, epoch=5).last_seq == 1


def check_large_bodies_come_back_whole_when_asked_for(journals: Journals) -> None:
    """Text, values and binaries of any size; left away for those who only want the list."""
    journal = begin(journals)
    events: list[Event] = [
        AssistantEvent(content=LARGE, thinking=LARGE[:-1]),
        ToolUseEvent(tool_name="Write", input={"text": LARGE}),
        ToolResultEvent(result=b"\x00\xff", extra={}),
        ToolResultEvent(result=[LARGE], extra={"kept": 1}),
    ]

    written = [journal.append(event) for event in events]

    assert list(journals.read(JOB)) == written
    assert list(journals.last(JOB, 4, load_blobs=True)) == written
    assert [getattr(event, "result", None) for event in written[2:]] == [b"\x00\xff", [LARGE]]
    assert [event.extra for event in written] == [None, None, {}, {"kept": 1}]
    light = list(journals.last(JOB, 4))
    assert [getattr(event, "content", None) for event in light[:1]] == [None]
    assert [event.seq for event in light] == [1, 2, 3, 4]


def check_extra_comes_back_exactly(journals: Journals) -> None:
    """Whatever keys and values it has, ours included."""
    journal = begin(journals)
    extras: list[dict[str, object] | None] = [
        None,
        {},
        {"": "", "\u2028": "\u2029\x00", "n": 10**30, "f": 1e-300, "nested": [{"a": [None]}]},
        {"$journal": {"blobs": {"content": "mine"}}},
    ]

    for extra in extras:
        journal.append(AssistantEvent(content="x", extra=extra))

    assert [event.extra for event in journals.read(JOB)] == extras


def check_what_unicode_cannot_write_is_replaced_and_said(journals: Journals) -> None:
    """A lone surrogate becomes U+FFFD, and the event names the field."""
    journal = begin(journals)

    written = journal.append(AssistantEvent(content="a\ud800b", extra={"k": 1}))

    assert list(journals.read(JOB)) == [written]
    assert texts([written]) == ["a\N{REPLACEMENT CHARACTER}b"]
    assert written.extra == {"k": 1, "$journal": {"replaced": ["content"]}}


def check_what_is_no_json_is_refused_and_changes_nothing(journals: Journals) -> None:
    """An event that cannot be written leaves no trace, and the next one is written."""
    journal = begin(journals)
    journal.append(say("before"))

    assert raised(NightherdError, lambda: journal.append(ToolResultEvent(result=object())))
    after = journal.append(say("after"))

    assert after.seq == 2
    assert texts(journals.read(JOB)) == ["before", "after"]


def check_what_could_not_be_read_back_is_refused(journals: Journals) -> None:
    """An event whose fields do not have the types they say is never acknowledged, nor tried forever."""
    journal = begin(journals)
    wrong: Any = 5
    broken: list[Event] = [
        AssistantEvent(content=wrong),
        ToolResultEvent(result=LARGE, tool_use_id=wrong),
        ErrorEvent(message="x", code=wrong),
    ]

    for event in broken:
        assert raised(NightherdError, partial(journal.append, event))
    after = journal.append(say("after"))

    assert after.seq == 1
    assert list(journals.read(JOB)) == [after]


def check_following_shows_each_event_once_and_in_order(journals: Journals) -> None:
    """From before the journal exists, across executions, until stopped."""
    steps: list[Callable[[], object]] = [
        lambda: None,
        lambda: begin(journals, epoch=1).append(say("one")),
        lambda: None,
        lambda: [begin(journals, epoch=2).append(say(text)) for text in ("two", "three")],
    ]

    def wait(timeout: float, /) -> bool:
        assert timeout > 0
        if not steps:
            return True
        steps.pop(0)()
        return False

    assert texts(journals.follow(JOB, wait=wait)) == ["one", "two", "three"]
    assert texts(journals.follow(JOB, after=2, wait=lambda timeout, /: True)) == ["three"]


def check_a_message_is_found_by_the_event_that_ends_it(journals: Journals) -> None:
    """Also where a killed writer left a part of it; a message without its end is none."""
    first = begin(journals, epoch=1)
    first.append(SystemEvent(subtype=SystemSubtype.USER_INPUT, content="go", message=1, end=True))
    first.append(AssistantEvent(content="half of", message=2, index=0))
    second = begin(journals, epoch=2)
    second.append(say("in no message"))
    second.append(AssistantEvent(content="all", message=2, index=0))
    ended = second.append(ToolUseEvent(tool_name="Bash", message=2, index=1, end=True))
    second.append(ErrorEvent(message="in no message either"))
    second.append(AssistantEvent(content="streamed", message=3, partial=True, end=True))
    second.append(AssistantEvent(content="unfinished", message=3, index=0))

    assert [journals.seq_of_message(JOB, number) for number in (1, 2)] == [1, ended.seq]
    assert [journals.seq_of_message(JOB, number) for number in (0, -1, 3, 4, 99)] == [None] * 5
    assert journals.seq_of_message(OTHER_JOB, 1) is None


def check_jobs_do_not_share_a_journal(journals: Journals) -> None:
    """Each has its own numbers and its own events."""
    begin(journals).append(say("mine"))
    other = begin(journals, job_id=OTHER_JOB).append(say("theirs"))

    assert other.seq == 1
    assert texts(journals.read(JOB)) == ["mine"]


def check_only_a_job_id_names_a_journal(journals: Journals) -> None:
    """Anything else could name another file."""
    for name in ("../x", "", "job-2026-01-02-abc123/../y", "job-2026-01-02-abc123\n"):
        assert raised(InvalidValueError, partial(begin, journals, job_id=JobId(name)))


def check_a_closed_journal_takes_nothing(journals: Journals) -> None:
    """Closing is final for the handle, and may be done twice."""
    journal = begin(journals)
    journal.append(say("one"))
    journal.close()
    journal.close()

    assert raised(NightherdError, lambda: journal.append(say("two")))
    assert raised(NightherdError, journal.sync)
    assert texts(journals.read(JOB)) == ["one"]


def check_an_undisturbed_journal_has_nothing_to_report(journals: Journals) -> None:
    """Findings of a journal that was only written."""
    journal = begin(journals, epoch=2)
    for number in range(3):
        journal.append(say(str(number)))
    journal.sync()

    findings = journals.examine(JOB)

    assert (findings.events, findings.last_seq, findings.epoch) == (3, 3, 2)
    assert (findings.missing, findings.torn, findings.bad_lines) == (0, 0, ())


def check_a_journal_with_events_is_not_put_aside(journals: Journals) -> None:
    """Only what cannot be read is moved aside."""
    journal = begin(journals)
    assert not journals.examine(JOB).is_garbage
    journals.put_aside(OTHER_JOB)
    journal.append(say("one"))
    journal.close()

    assert raised(RefusedError, lambda: journals.put_aside(JOB))
    assert texts(journals.read(JOB)) == ["one"]


def check_stored_bodies_are_named_and_can_be_read(journals: Journals) -> None:
    """An event read without blobs says which bodies it lacks, and each can be read by its name."""
    journal = begin(journals)
    output = journals.keep_output(["all of ", "it"])
    journal.append(ToolResultEvent(result=LARGE, full_output=output))
    journal.append(say("short"))

    large, short = journals.read(JOB, load_blobs=False)
    bodies = journals.stored_bodies(large)

    assert {field: (ref.size, ref.kind) for field, ref in bodies.items()} == {
        "result": (len(LARGE), "text"),
        "full_output": (9, "text"),
    }
    pieces = journals.read_blob(bodies["result"].sha256)
    assert pieces is not None
    assert b"".join(pieces) == LARGE.encode()
    assert journals.stored_bodies(short) == {}
    assert journals.read_blob("0" * 64) is None
    assert journals.read_blob("../" + "0" * 61) is None


JOURNAL_CONTRACT: tuple[Callable[[Journals], None], ...] = tuple(
    check for name, check in globals().items() if name.startswith("check_")
)
"""Every check of this module, in order."""
