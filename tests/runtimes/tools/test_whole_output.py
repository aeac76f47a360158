"""Long output: the model gets both ends, all of it is stored, in bounded memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightherd.errors import JournalError
from nightherd.model.agents.script import UseTool
from nightherd.model.journal.event import FullOutput, ToolResultEvent
from nightherd.model.secrets import knowing
from nightherd.runtimes.tools.bash import Bash
from nightherd.runtimes.tools.output import (
    KEPT_LIMIT_BYTES,
    OUTPUT_LIMIT_BYTES,
    WholeOutput,
    bounded,
)
from nightherd.runtimes.tools.search import Grep
from nightherd.runtimes.tools.tool import Tool, ToolOutcome, failed
from runtimes.stage import Stage

LINES = 20_000
NUMBERED = "".join(f"{number}\n" for number in range(1, LINES + 1))


class Store:
    """Where outputs are stored: in a list, or only counted."""

    def __init__(self, *, is_counting: bool = False) -> None:
        self.texts: list[str] = []
        self.size = 0
        self._is_counting = is_counting

    async def keep(self, pieces: Iterator[str], left_out: int) -> FullOutput:
        text = ""
        for piece in pieces:
            self.size += len(piece)
            text += "" if self._is_counting else piece
        self.texts.append(text)
        return FullOutput(sha256="0" * 64, size=self.size, left_out=left_out)


def use(stage: Stage, store: Store, tool: Tool, **input: str) -> ToolOutcome:
    return anyio.run(tool.run, input, stage.context(keep_output=store.keep))


def test_long_output_is_stored_whole(stage: Stage) -> None:
    store = Store()

    outcome = use(stage, store, Bash(), command=f"seq {LINES}")

    assert store.texts == [NUMBERED]
    assert outcome.full_output is not None
    assert "bytes left out" in (outcome.result or "")
    assert len(outcome.result or "") < OUTPUT_LIMIT_BYTES + 100


@pytest.mark.parametrize("ending", ["exit 3", "kill -KILL $$", "sleep 1000"])
def test_long_output_of_a_failed_command_is_stored_too(stage: Stage, ending: str) -> None:
    store = Store()

    outcome = use(stage, store, Bash(), command=f"seq {LINES}; {ending}", timeout="2s")

    assert not outcome.success
    assert outcome.full_output is not None
    assert NUMBERED.startswith(store.texts[0])


def test_short_output_is_not_stored(stage: Stage) -> None:
    store = Store()

    outcome = use(stage, store, Bash(), command=f"head -c {OUTPUT_LIMIT_BYTES} /dev/zero")

    assert (store.texts, outcome.full_output) == ([], None)


def test_output_beyond_the_maximum_is_cut_with_a_note_in_bounded_memory(stage: Stage) -> None:
    store, size = Store(is_counting=True), KEPT_LIMIT_BYTES + 10_000_000

    async def measure() -> tuple[ToolOutcome, int]:
        command = f"head -c {size} /dev/zero | tr '\\0' x"
        context = stage.context(keep_output=store.keep)
        outcome = await Bash().run({"command": command}, context)
        return outcome, tracemalloc.get_traced_memory()[1]

    tracemalloc.start()
    try:
        outcome, peak = anyio.run(measure)
    finally:
        tracemalloc.stop()

    assert outcome.full_output is not None
    left_out = size - KEPT_LIMIT_BYTES - OUTPUT_LIMIT_BYTES // 2
    assert outcome.full_output.left_out == left_out
    note = f"\n[... {left_out:,} bytes left out ...]\n"
    assert store.size == size - left_out + len(note)
    assert peak < 8_000_000


@given(st.integers(0, 70_000))
def test_what_is_stored_says_exactly_what_it_lacks(beyond: int) -> None:
    store, kept = Store(), 60_000
    data = bytes(65 + place % 26 for place in range(kept + beyond))

    async def collect() -> ToolOutcome:
        with WholeOutput(STAGE.context(keep_output=store.keep), kept_limit=kept) as output:
            output.add(data)
            return await output.stored(ToolOutcome(result=output.text()))

    outcome = anyio.run(collect)

    assert outcome.full_output is not None
    left_out = outcome.full_output.left_out
    note = f"\n[... {left_out:,} bytes left out ...]\n" if left_out else ""
    whole = data.decode()
    assert store.texts[0] == whole[:kept] + note + whole[kept + left_out :]


STAGE = Stage(directory=None)  # type: ignore[arg-type] # nothing runs in it


def test_an_output_that_cannot_be_stored_is_still_a_result_that_says_so(stage: Stage) -> None:
    async def refuse(pieces: Iterator[str], left_out: int) -> FullOutput:
        raise JournalError("cannot write the blob: No space left on device")

    context = stage.context(keep_output=refuse)
    outcome = anyio.run(Bash().run, {"command": f"seq {LINES}"}, context)

    assert (outcome.success, outcome.full_output) == (True, None)
    assert "could not be stored: cannot write the blob: No space left" in (outcome.result or "")


def test_long_findings_of_a_search_are_stored(stage: Stage) -> None:
    (stage.directory / "many.txt").write_text(f"{'x' * 200}\n" * 500)
    store = Store()

    outcome = use(stage, store, Grep(), pattern=".", path="many.txt")

    assert outcome.full_output is not None
    assert store.texts[0].count("\n") == 500


@pytest.mark.parametrize("given", [ToolOutcome(result=NUMBERED), failed(NUMBERED)])
def test_long_answers_of_other_tools_are_stored(stage: Stage, given: ToolOutcome) -> None:
    store = Store()

    outcome = anyio.run(bounded, given, stage.context(keep_output=store.keep))

    assert store.texts == [NUMBERED]
    assert len(outcome.result or outcome.error or "") < OUTPUT_LIMIT_BYTES + 100


def test_the_result_of_a_scripted_agent_names_what_was_stored(stage: Stage) -> None:
    store = Store()

    step = UseTool("Bash", {"command": f"seq {LINES}"})
    (result,) = (
        event
        for event in stage.play(step, keep_output=store.keep)
        if isinstance(event, ToolResultEvent)
    )

    assert result.full_output is not None
    assert store.texts == [NUMBERED]


@given(
    st.text("abc", max_size=60),
    st.lists(st.integers(0, 7), max_size=20),
    st.lists(st.text("abc", min_size=1, max_size=5), min_size=1, max_size=4),
)
def test_a_text_masked_in_pieces_is_the_text_masked_whole(
    text: str, sizes: list[int], values: list[str]
) -> None:
    secrets = knowing({value: f"S{place}" for place, value in enumerate(values)})
    pieces, place = [], 0
    for size in sizes:
        pieces.append(text[place : place + size])
        place += size
    pieces.append(text[place:])

    assert "".join(secrets.mask_stream(pieces)) == secrets.mask(text)
