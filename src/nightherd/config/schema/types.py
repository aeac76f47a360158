"""The kinds of values fields are made of. What a text means is decided by the model's own parsers."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from nightherd.errors import InvalidValueError
from nightherd.files.yaml_nodes import resolve_plain
from nightherd.model.agents.mcp import check_server_name
from nightherd.model.ids import check_name
from nightherd.model.permissions.tool_rule import check_tool_name, parse_rule
from nightherd.model.schedules.rule import check_cron
from nightherd.model.units import MicroUsd, parse_duration, parse_size, parse_usd

LARGEST_COUNT = 1_000_000_000_000


class Model(BaseModel):
    """What all sections share: no unknown keys, no guessing of types, no changes."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        # Built at the first use, and only once: else each section is built again inside every section that holds it.
        defer_build=True,
    )


class Filled(str):
    """A text that came out of the environment unquoted and may also be read as a number or truth value."""

    __slots__ = ()


def typed(value: object) -> object:
    """The value by its spelling, when it came out of the environment unquoted."""
    return resolve_plain(str(value)) if isinstance(value, Filled) else value


def typed_throughout(value: object) -> object:
    """`typed` at every depth, for values of any shape."""
    if isinstance(value, dict):
        return {key: typed_throughout(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return tuple(typed_throughout(inner) for inner in value)
    return typed(value)


def refuse(kind: str, message: str, *, key: str | None = None) -> PydanticCustomError:
    """The error for a value that is wrong in a way of ours; `key` names the key in question, if one is."""
    return PydanticCustomError(kind, "{message}", {"message": message, "key": key or ""})


def reading(
    kind: str, parse: Callable[[str], Any], *, numbers: bool = False
) -> Callable[[object], Any]:
    """A validator that reads a text with `parse`, and numbers too when `numbers` says so."""

    def read(value: object) -> Any:
        if numbers and isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str):
            raise refuse(f"wants_{kind}", "")
        try:
            return parse(value)
        except InvalidValueError as error:
            raise refuse(f"bad_{kind}", error.message) from error

    return read


def milliseconds(value: object) -> object:
    """A duration given as text, or as a whole number of milliseconds."""
    value = typed(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_COUNT:
        return timedelta(milliseconds=value)
    return reading("duration", parse_duration)(value)


def shaped(pattern: str, what: str) -> BeforeValidator:
    """The validator of texts that match `pattern`; `what` says in words what they are and how to write them."""
    form = re.compile(pattern)

    def match(text: str) -> str:
        if form.fullmatch(text) is None:
            raise InvalidValueError(f"{text!r} is not {what}")
        return text

    described = Annotated[str, Field(pattern=f"^(?:{pattern})$")]
    return BeforeValidator(reading("shape", match), json_schema_input_type=described)


def more_than_nothing(value: timedelta) -> timedelta:
    """A duration that is not zero."""
    if not value:
        raise refuse("bad_duration", "the duration must be greater than 0")
    return value


def read_timezone(name: str) -> str:
    """A time zone the system knows."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidValueError(
            f"{name!r} is not a time zone; write UTC or Europe/Berlin"
        ) from error
    return name


def check_rule(*, denies: bool) -> Callable[[str], str]:
    """A validator of rules for tools: the text, if it is one that can work."""
    return lambda text: parse_rule(text, denies=denies).text


Text = Annotated[str, Field()]
Filling = Annotated[str, Field(min_length=1)]
"""A text that is not empty."""
Flag = Annotated[bool, BeforeValidator(typed, json_schema_input_type=bool)]
FromZero = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]
FromOne = Annotated[int, Field(ge=1, le=LARGEST_COUNT)]
PortNumber = Annotated[int, Field(ge=1, le=65_535)]
MoreThanZero = Annotated[float, Field(gt=0, le=876_000)]
Whole = Annotated[FromZero, BeforeValidator(typed, json_schema_input_type=FromZero)]
Count = Annotated[FromOne, BeforeValidator(typed, json_schema_input_type=FromOne)]
Port = Annotated[PortNumber, BeforeValidator(typed, json_schema_input_type=PortNumber)]
Amount = Annotated[MoreThanZero, BeforeValidator(typed, json_schema_input_type=MoreThanZero)]
Hours = Amount
Duration = Annotated[
    timedelta, BeforeValidator(reading("duration", parse_duration), json_schema_input_type=str)
]
Span = Annotated[Duration, AfterValidator(more_than_nothing)]
"""A duration longer than nothing."""
Timeout = Annotated[
    timedelta,
    BeforeValidator(milliseconds, json_schema_input_type=str | int),
    AfterValidator(more_than_nothing),
]
"""A duration, or a whole number of milliseconds."""
Size = Annotated[
    int,
    BeforeValidator(reading("size", parse_size, numbers=True), json_schema_input_type=str | int),
]
Money = Annotated[
    MicroUsd,
    BeforeValidator(reading("money", parse_usd, numbers=True), json_schema_input_type=str | float),
]
"""Dollars, kept as micro-dollars."""
Name = Annotated[str, BeforeValidator(reading("name", check_name), json_schema_input_type=str)]
ServerName = Annotated[
    str, BeforeValidator(reading("name", check_server_name), json_schema_input_type=str)
]
ToolName = Annotated[
    str, BeforeValidator(reading("shape", check_tool_name), json_schema_input_type=str)
]
AllowRule = Annotated[
    str, BeforeValidator(reading("shape", check_rule(denies=False)), json_schema_input_type=str)
]
DenyRule = Annotated[
    str, BeforeValidator(reading("shape", check_rule(denies=True)), json_schema_input_type=str)
]
Cron = Annotated[str, BeforeValidator(reading("cron", check_cron), json_schema_input_type=str)]
TimeZone = Annotated[
    str, BeforeValidator(reading("timezone", read_timezone), json_schema_input_type=str)
]
Anything = Annotated[Any, BeforeValidator(typed_throughout)]
Texts = tuple[Text, ...]
Environment = dict[str, Text]
"""Variables for a process."""
Inputs = dict[str, Anything]
"""Values for `${inputs.NAME}`."""
