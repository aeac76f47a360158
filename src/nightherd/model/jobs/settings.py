"""The settings that an execution of a job has, value by value: where each was written, or what changed it for this job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from nightherd.decoding import json_decoder
from nightherd.model.agents.agent import Agent, Declared
from nightherd.model.config_value import ConfigValue, Layer
from nightherd.model.jobs.options import JobOptions
from nightherd.model.limits.limits import LimitName, Limits
from nightherd.model.permissions.fingerprint import relative
from nightherd.model.problem import Place
from nightherd.model.units import ONE_MS, MicroUsd, format_duration, to_usd

PLAIN = (
    "description",
    "repo",
    "model",
    "fallback_model",
    "effort",
    "system_prompt",
    "max_turns",
    "permission_mode",
    "tools",
    "allowed_tools",
    "denied_tools",
    "idempotent_tools",
    "required_caps",
    "add_dirs",
    "setting_sources",
    "operation",
    "questions",
    "sandbox",
)
"""Settings that a job may have otherwise than the files say, under the name that they have there."""
OPAQUE = ("mcp_servers", "plugins", "hooks", "notify")
"""Settings that are only named where they are held back: they may contain what only the files may say."""
NOT_ACCEPTED = "as last accepted"
"""The value of such a setting."""
OF_SESSIONS = ("model", "max_turns", "job_timeout")
"""Settings of an agent that its session, or that of its schedule, may also give."""
DIRECTORY = "working_directory"


class Stage(NamedTuple):
    """An agent as it is once one more layer counts."""

    layer: Layer
    agent: Agent


class StoredValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A setting as it is recorded."""

    key: str
    value: Any = None
    layer: Layer = Layer.BUILT_IN
    file: str | None = None
    """Seen from the directory of the fleet file, where it is below."""
    line: int = 0
    column: int = 0


class StoredSettings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of an execution, as they are recorded."""

    agent: str
    values: tuple[StoredValue, ...]
    is_cut: bool = False
    """Whether there were more."""
    v: int = 1


DECODER = json_decoder(StoredSettings)
MOST_VALUES = 5_000
"""Settings of one execution that are recorded."""


def settings_of(
    declared: Declared, stages: Sequence[Stage], schedule: str | None, options: JobOptions
) -> tuple[ConfigValue, ...]:
    """Return the settings that the last of `stages` has; a value that a stage changed has its layer."""
    found = _Settings(declared, schedule)
    found.limit(declared.own_limits, declared.agent.limits, Layer.FLEET)
    before = declared.agent
    for stage in stages:
        found.change(before, stage.agent, stage.layer)
        before = stage.agent
    found.give(options)
    return tuple(found.values.values())


def stored_settings(
    agent: str, values: Sequence[ConfigValue], mask: Callable[[Any], Any], home: str
) -> StoredSettings:
    """Return settings as they are recorded: secrets masked, files seen from `home`."""
    return StoredSettings(
        agent=agent,
        values=tuple(_stored(one, mask, home) for one in values[:MOST_VALUES]),
        is_cut=len(values) > MOST_VALUES,
    )


def _stored(one: ConfigValue, mask: Callable[[Any], Any], home: str) -> StoredValue:
    place = one.place
    return StoredValue(
        key=str(mask(one.key)),
        value=mask(one.value),
        layer=one.layer,
        file=None if place is None else relative(place.file, home) if home else place.file,
        line=0 if place is None else place.line,
        column=0 if place is None else place.column,
    )


class _Settings:
    """The settings of one execution, being worked out."""

    def __init__(self, declared: Declared, schedule: str | None) -> None:
        self.values: dict[str, ConfigValue] = {}
        self._fleet = {one.key: one for one in declared.fleet}
        self._schedule = f"schedules.{schedule}." if schedule is not None else None
        for one in declared.values:
            if not one.key.startswith("schedules."):
                self.values[one.key] = one
            elif self._schedule is not None and one.key.startswith(self._schedule):
                is_written = one.place is not None
                self.values[one.key] = replace(one, layer=Layer.SCHEDULE) if is_written else one

    def change(self, before: Agent, now: Agent, layer: Layer) -> None:
        """Note what an agent has otherwise than the agent that it was made from."""
        for name in PLAIN:
            if getattr(before, name) != getattr(now, name):
                self._put(name, getattr(now, name), layer)
        if before.max_budget_microusd != now.max_budget_microusd:
            self._put("max_budget_usd", _dollars(now.max_budget_microusd), layer)
        if before.job_timeout != now.job_timeout:
            self._put("job_timeout", now.job_timeout, layer)
        self._change_directory(before, now, layer)
        for name in before.session.__struct_fields__:
            if getattr(before.session, name) != getattr(now.session, name):
                self._put(f"session.{name}", getattr(now.session, name), layer)
        if before.approvals != now.approvals and layer is not Layer.SCHEDULE:
            self._put("approvals", [rule.tool for rule in now.approvals], layer)
        if layer is Layer.HELD:
            for name in OPAQUE:
                if getattr(before, name) != getattr(now, name):
                    self._put(name, NOT_ACCEPTED, layer)
        self.limit(before.limits, now.limits, layer)

    def _change_directory(self, before: Agent, now: Agent, layer: Layer) -> None:
        policy, other = now.workspace, before.workspace
        changed = [
            name for name in ("mode", "scope", "keep", "base")
            if getattr(policy, name) != getattr(other, name)
        ]  # fmt: skip
        alone = self.values.pop(DIRECTORY, None) if changed else self.values.get(DIRECTORY)
        if changed and alone is not None:
            self.values[f"{DIRECTORY}.root"] = replace(alone, key=f"{DIRECTORY}.root")
        for name in changed:
            self._put(f"{DIRECTORY}.{name}", getattr(policy, name), layer)
        if before.working_directory != now.working_directory:
            is_alone = alone is not None and not changed
            self._put(DIRECTORY if is_alone else f"{DIRECTORY}.root", now.working_directory, layer)

    def limit(self, before: Limits, now: Limits, layer: Layer) -> None:
        """Note the limits that differ."""
        for name in LimitName:
            if before.maximum(name) != now.maximum(name):
                self._put(f"limits.{name}", _amount(name, now.maximum(name)), layer)
            if before.outcome(name) is not now.outcome(name):
                self._put(f"limits.on_reached.{name}", now.outcome(name), layer)
            if before.per_day.maximum(name) != now.per_day.maximum(name):
                self._put(f"limits.per_day.{name}", _amount(name, now.per_day.maximum(name)), layer)

    def give(self, options: JobOptions) -> None:
        """Note the limits that the job was given; what else it was given, its agent has by now."""
        for key, maximum in (options.limits or {}).items():
            name = LimitName(key)
            self._put(f"limits.{name}", _amount(name, maximum), Layer.REQUEST)

    def _put(self, key: str, value: Any, layer: Layer) -> None:
        """Replace what is known under a key and below it; None leaves nothing."""
        for known in [one for one in self.values if _is_at(one, key)]:
            del self.values[known]
        place = self._place(key, layer)
        for path, leaf in _flat(key, _plain(value)):
            if leaf is not None:
                self.values[path] = ConfigValue(key=path, value=leaf, place=place, layer=layer)

    def _place(self, key: str, layer: Layer) -> Place | None:
        """Return where a layer that is written somewhere says it."""
        if layer is Layer.FLEET:
            return _first_place(self._fleet, (key, "limits"))
        if layer is not Layer.SCHEDULE or self._schedule is None:
            return None
        wanted = [key, *((f"session.{key}",) if key in OF_SESSIONS else ())]
        return _first_place(self.values, [f"{self._schedule}{one}" for one in wanted])


def _first_place(values: Mapping[str, ConfigValue], keys: Iterable[str]) -> Place | None:
    return next(
        (
            one.place
            for key in keys
            for one in values.values()
            if one.place is not None and _is_at(one.key, key)
        ),
        None,
    )


def _is_at(key: str, above: str) -> bool:
    """Whether a key is that one, or one below it."""
    return key == above or key.startswith((f"{above}.", f"{above}["))


def _flat(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield each leaf of a plain value with its path, as the files' values have theirs."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flat(f"{key}.{name}", inner)
    elif isinstance(value, list) and value:
        for place, inner in enumerate(value):
            yield from _flat(f"{key}[{place}]", inner)
    else:
        yield key, value


def _plain(value: Any) -> Any:
    """Return a value as JSON has it, a duration as the files spell it."""
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, Enum):
        return value.value
    return msgspec.to_builtins(value)


def _dollars(amount: MicroUsd | None) -> float | None:
    return None if amount is None else to_usd(amount)


def _amount(name: LimitName, maximum: int | None) -> Any:
    if maximum is None:
        return None
    if name is LimitName.SPEND:
        return to_usd(MicroUsd(maximum))
    return maximum * ONE_MS if name is LimitName.DURATION else maximum
