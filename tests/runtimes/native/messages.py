"""Every kind of message and part that pydantic-ai has, for hypothesis to make."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from pydantic_ai import messages as m
from pydantic_ai.usage import RequestUsage

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAME = st.text("abcXYZ_09", min_size=1, max_size=8)
MAYBE_NAME = st.none() | NAME
INSTANT = st.datetimes(
    min_value=datetime(2020, 1, 1),  # noqa: DTZ001 (the strategy adds the zone)
    max_value=datetime(2030, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
NUMBER = st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False)
VALUE: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)
OBJECT = st.dictionaries(TEXT, VALUE, max_size=3)
MAYBE_OBJECT = st.none() | OBJECT
ARGUMENTS = (
    st.none()
    | OBJECT
    | TEXT
    | st.sampled_from(['{"a": 1}', '{"a":1}', '{"ü": "é"}', '{"a":  1}', '{"n": 1e400}', "{", ""])
)

BINARY = st.builds(
    m.BinaryContent,
    st.binary(max_size=8),
    media_type=st.sampled_from(["image/png", "audio/wav", "application/pdf", "text/x-odd"]),
    vendor_metadata=MAYBE_OBJECT,
    identifier=MAYBE_NAME,
)


def url(kind: type[Any], ending: str) -> st.SearchStrategy[Any]:
    return st.builds(
        kind,
        NAME.map(lambda name: f"https://example.org/{name}.{ending}"),
        force_download=st.sampled_from([False, True, "allow-local"]),
        vendor_metadata=MAYBE_OBJECT,
        identifier=MAYBE_NAME,
    )


FILE = (
    BINARY
    | url(m.ImageUrl, "png")
    | url(m.AudioUrl, "mp3")
    | url(m.VideoUrl, "mp4")
    | url(m.DocumentUrl, "pdf")
    | st.builds(
        m.UploadedFile,
        file_id=NAME,
        provider_name=st.just("anthropic"),
        media_type=st.just("image/png"),
    )
)
USER_CONTENT = (
    TEXT
    | FILE
    | st.builds(m.TextContent, TEXT, metadata=VALUE)
    | st.builds(m.StructuredContent, OBJECT, tag=st.just("app_state"))
    | st.builds(m.CachePoint)
)

CALL_IDS: dict[str, Any] = {"tool_name": NAME, "tool_call_id": NAME}
PROVIDED: dict[str, Any] = {"provider_name": st.just("anthropic"), "provider_details": MAYBE_OBJECT}
NAMED: dict[str, Any] = {**PROVIDED, "id": MAYBE_NAME}

RETURN_CONTENT = VALUE | FILE | st.lists(TEXT | FILE, max_size=3)
OUTCOME = st.sampled_from(["success", "failed", "denied", "interrupted", "retried"])

INSTRUCTION_ID = st.sampled_from(
    [
        None,
        m.InstructionId(m.AgentInstructionSource()),
        m.InstructionId(m.ToolsetInstructionSource("files"), name="limits"),
    ]
)
INSTRUCTION = st.builds(m.InstructionPart, TEXT, dynamic=st.booleans(), id=INSTRUCTION_ID)


def speech(speaker: str) -> st.SearchStrategy[Any]:
    return st.builds(
        m.SpeechPart,
        speaker=st.just(speaker),
        transcript=st.none() | TEXT,
        audio=st.none() | BINARY,
        interrupted_at_ms=st.none() | st.integers(0, 99),
        **NAMED,
    )


REQUEST_PARTS: dict[str, st.SearchStrategy[Any]] = {
    "system-prompt": st.builds(
        m.SystemPromptPart,
        TEXT,
        timestamp=INSTANT,
        dynamic_ref=MAYBE_NAME,
        metadata=MAYBE_OBJECT,
        scope=st.sampled_from(["conversation", "request"]),
    ),
    "user-prompt": st.builds(
        m.UserPromptPart, TEXT | st.lists(USER_CONTENT, max_size=4), timestamp=INSTANT
    ),
    "tool-return": st.builds(
        m.ToolReturnPart,
        content=RETURN_CONTENT,
        metadata=VALUE,
        timestamp=INSTANT,
        outcome=OUTCOME,
        **CALL_IDS,
    ),
    "retry-feedback": st.builds(
        m.RetryFeedbackPart,
        TEXT,
        retry=st.builds(m.RetryInfo, cause=st.sampled_from(["model_retry", "no_output"])),
        timestamp=INSTANT,
    ),
    "speech": speech("user"),
    "compaction": st.builds(m.CompactionPart, TEXT, metadata=MAYBE_OBJECT),
    "tool-availability-delta": st.builds(
        m.ToolAvailabilityDeltaPart, tools_added=st.lists(NAME, max_size=2), tool_call_id=MAYBE_NAME
    ),
    "capability-load-delta": st.builds(
        m.CapabilityLoadDeltaPart, loaded=st.lists(NAME, max_size=2), tool_call_id=MAYBE_NAME
    ),
    "model-settings-delta": st.builds(
        m.ModelSettingsDeltaPart,
        settings=st.sampled_from([{}, {"thinking": "high"}]),
        top_level=st.booleans(),
    ),
    "instruction-delta": st.builds(
        m.InstructionDeltaPart, id=INSTRUCTION_ID, content=st.none() | TEXT, base_hash=MAYBE_NAME
    ),
    "instruction-baseline": st.builds(
        m.InstructionBaselinePart,
        instructions=st.lists(INSTRUCTION | INSTRUCTION.map(m.InstructionDigest.of), max_size=2),
    ),
}
RESPONSE_PARTS: dict[str, st.SearchStrategy[Any]] = {
    "text": st.builds(
        m.TextPart,
        TEXT,
        citations=st.none()
        | st.just([m.Citation([m.WebCitationSource("https://example.org", title="home")])]),
        **NAMED,
    ),
    "thinking": st.builds(m.ThinkingPart, TEXT, signature=MAYBE_NAME, **NAMED),
    "tool-call": st.builds(m.ToolCallPart, args=ARGUMENTS, **CALL_IDS, **NAMED),
    "builtin-tool-call": st.builds(m.NativeToolCallPart, args=ARGUMENTS, **CALL_IDS, **NAMED),
    "builtin-tool-return": st.builds(
        m.NativeToolReturnPart,
        content=RETURN_CONTENT,
        metadata=VALUE,
        timestamp=INSTANT,
        outcome=OUTCOME,
        **CALL_IDS,
        **PROVIDED,
    ),
    "compaction": st.builds(m.CompactionPart, st.none() | TEXT, **NAMED),
    "file": st.builds(m.FilePart, BINARY, **NAMED),
    "speech": speech("assistant"),
}

RUN: dict[str, Any] = {
    "run_id": MAYBE_NAME,
    "conversation_id": MAYBE_NAME,
    "metadata": MAYBE_OBJECT,
}
USAGE = st.builds(
    RequestUsage,
    input_tokens=st.integers(0, 2**40),
    output_tokens=st.integers(0, 2**40),
    cache_read_tokens=st.integers(0, 9),
    audio_seconds=st.sampled_from([0.0, 1.5]),
    details=st.dictionaries(NAME, st.integers(0, 9), max_size=2),
    cost=st.sampled_from([None, Decimal("0.000196"), Decimal(0)]),
)
REQUEST = st.builds(
    m.ModelRequest,
    parts=st.lists(st.one_of(*REQUEST_PARTS.values()), max_size=5),
    timestamp=st.none() | INSTANT,
    instructions=st.none() | TEXT,
    state=st.sampled_from(["complete", "interrupted"]),
    **RUN,
)
RESPONSE = st.builds(
    m.ModelResponse,
    parts=st.lists(st.one_of(*RESPONSE_PARTS.values()), max_size=5),
    usage=USAGE,
    model_name=MAYBE_NAME,
    timestamp=INSTANT,
    provider_details=MAYBE_OBJECT,
    provider_response_id=MAYBE_NAME,
    finish_reason=st.sampled_from([None, "stop", "length", "tool_call"]),
    state=st.sampled_from(["complete", "interrupted", "suspended"]),
    workspace_ref=st.none() | st.builds(m.WorkspaceRef, provider=NAME, id=NAME),
    failed_attempts=st.none()
    | st.lists(
        st.builds(
            m.ModelRequestAttempt,
            model_name=NAME,
            outcome=st.just("error"),
            error=MAYBE_NAME,
            timestamp=INSTANT,
            duration=st.just(timedelta(seconds=1.5)),
        ),
        max_size=1,
    ),
    **RUN,
)


@st.composite
def conversations(draw: st.DrawFn) -> list[m.ModelMessage]:
    """A few messages in any order."""
    return draw(st.lists(REQUEST | RESPONSE, max_size=3))


def old_retry(tool_name: str | None) -> m.ModelRequest:
    """A request with the part that pydantic-ai has given up, and turns into others when it reads one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        part = m.RetryPromptPart("try again", tool_name=tool_name, tool_call_id="call")  # type: ignore[deprecated,unused-ignore]
    return m.ModelRequest([part])
