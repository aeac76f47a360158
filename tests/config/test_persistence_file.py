"""`state_persistence.yaml`: what is shipped, what a project lays over it, and every mistake at its place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from nightherd.config.persistence import PROJECT_FILE, SHIPPED, load_persistence
from nightherd.errors import ConfigInvalidError
from nightherd.model.checkpoints.checkpoint import TriggerPoint
from nightherd.model.checkpoints.persistence import (
    DEFAULT,
    Backoff,
    OnCompletion,
    Persistence,
    WriteRetry,
)
from nightherd.wiring.fleets import check_fleet

EXTENDS = "extends: nightherd/state_schema.yaml\n"


def project(tmp_path: Path, text: str, name: Path = PROJECT_FILE) -> Path:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return tmp_path


def problems(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(ConfigInvalidError) as caught:
        load_persistence(project(tmp_path, text))
    return [
        f"{Path(one.place.file).name}:{one.place.line}:{one.place.column} {one.message}"
        for one in caught.value.problems
    ]


def test_what_is_shipped_is_what_the_engine_takes_without_a_file(tmp_path: Path) -> None:
    shipped = load_persistence(tmp_path)

    assert not shipped.is_project
    assert (shipped.schema_version, shipped.required) == (DEFAULT.schema_version, DEFAULT.required)
    assert (shipped.performance, shipped.retention) == (DEFAULT.performance, DEFAULT.retention)
    assert {point: (one.enabled, one.priority) for point, one in shipped.triggers.items()} == {
        point: (one.enabled, one.priority) for point, one in DEFAULT.triggers.items()
    }


def test_a_project_says_only_what_differs(tmp_path: Path) -> None:
    found = load_persistence(
        project(
            tmp_path,
            EXTENDS
            + "checkpoint:\n  triggers:\n    pre_turn:\n      enabled: false\n"
            + "  performance:\n    incremental: true\n    compress: true\n"
            + "retention:\n  max_checkpoints: 20\n  cleanup:\n    keep_last_n: 5\n",
        )
    )

    assert found.is_project
    assert not found.is_enabled(TriggerPoint.PRE_TURN)
    assert found.is_enabled(TriggerPoint.POST_LLM)
    assert found.triggers[TriggerPoint.PRE_TURN].priority == 1, "merged key by key"
    assert (found.performance.compress, found.performance.atomic) == (True, True)
    assert (found.retention.max_checkpoints, found.retention.cleanup.keep_last_n) == (20, 5)
    assert found.retention.cleanup.delete_older_than_days == 7


def test_a_chain_of_files_is_followed(tmp_path: Path) -> None:
    project(tmp_path, EXTENDS + "retention:\n  max_checkpoints: 4\n", Path("config", "base.yaml"))
    found = load_persistence(
        project(tmp_path, "extends: base.yaml\nretention:\n  cleanup:\n    keep_last_n: 1\n")
    )

    assert (found.retention.max_checkpoints, found.retention.cleanup.keep_last_n) == (4, 1)


def test_null_takes_a_key_away(tmp_path: Path) -> None:
    found = load_persistence(
        project(
            tmp_path,
            EXTENDS
            + "checkpoint:\n  triggers:\n    pre_turn: null\n"
            + "state:\n  schema:\n    properties:\n      hooks: null\n",
        )
    )

    assert TriggerPoint.PRE_TURN not in found.triggers
    assert not found.is_enabled(TriggerPoint.PRE_TURN)
    assert "hooks" not in found.schema["properties"]
    assert "messages" in found.schema["properties"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("checkpont: {}\n", "unknown key 'checkpont'"),
        ("retention: {max_checkpoints: many}\n", "expected a whole number, got the text 'many'"),
        ("retention: {max_checkpoints: 0}\n", "expected at least 1, got the number 0"),
        (
            "retention: {on_completion: {action: burn}}\n",
            "'burn' is not one of archive, delete, keep",
        ),
        ("checkpoint: {performance: {atomic: 1}}\n", "expected true or false, got the number 1"),
        (
            "checkpoint: {performance: {retry: {backoff: x}}}\n",
            "'x' is not one of exponential, linear, fixed",
        ),
        ("checkpoint: {triggers: {post_lunch: {}}}\n", "unknown key 'post_lunch'"),
        (
            "checkpoint: {triggers: {on_error: {enabled: false}}}\n",
            "a trigger of priority 10 is always saved",
        ),
        (
            "checkpoint:\n  triggers: {on_error: {enabled: true}, on_suspend: null}\n",
            "yaml:3:53 expected a mapping of keys to values, got nothing",
        ),
        (
            "checkpoint: {triggers: {pre_turn: {priority: 11}}}\n",
            "expected at most 10, got the number 11",
        ),
        ('schema_version: "2.0.0"\n', "'2.0.0' is not one of 1.0.0, 1.1.0"),
        ("state: {schema: {properties: {status: {kind: x}}}}\n", "unknown key 'kind'"),
        ("state: {schema: {properties: {status: {type: word}}}}\n", "is not one of"),
        ("state: null\n", "yaml:2:8 expected a mapping of keys to values, got nothing"),
        (
            "retention:\n  max_checkpoints: 5\n  cleanup: {keep_last_n: null}\n",
            "yaml:4:26 expected a whole number, got nothing",
        ),
        (
            "retention: {cleanup: {delete_older_than_days: 1000000000}}\n",
            "expected at most 36500, got the number 1000000000",
        ),
        (
            "checkpoint: {performance: {retry: {max_attempts: 101}}}\n",
            "expected at most 100, got the number 101",
        ),
        ("retention: {on_completion: {archive_path: old}}\n", "put {thread_id} in it"),
        (
            "retention: {on_completion: {archive_path: '../{thread_id}'}}\n",
            "'../{thread_id}' is not a path inside the state directory",
        ),
        (
            "retention: {on_completion: {archive_path: '/var/{thread_id}'}}\n",
            "'/var/{thread_id}' is not a path inside the state directory",
        ),
        (
            "retention: {on_completion: {archive_path: 'threads/{thread_id}/'}}\n",
            "archiving would delete the job's own document there",
        ),
        ("state: {schema: {properties: {status: {enum: []}}}}\n", "must not be empty"),
        ("state: {schema: {properties: {status: {type: []}}}}\n", "must not be empty"),
        ("retention: 3\n", "expected a mapping of keys to values, got the number 3"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, text: str, expected: str) -> None:
    found = problems(tmp_path, EXTENDS + text)

    assert len(found) == 1, "one mistake is one problem"
    assert expected in found[0]
    assert found[0].startswith("state_persistence.yaml:")


def test_a_type_that_was_meant_as_a_word_is_told_how_to_write(tmp_path: Path) -> None:
    text = EXTENDS + "state: {schema: {properties: {inputs: {type: [object, null]}}}}\n"
    with pytest.raises(ConfigInvalidError) as caught:
        load_persistence(project(tmp_path, text))

    (found,) = caught.value.problems
    assert found.hint == 'put it in quotes: "null"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "extends: state_persistence.yaml\n",
            "state_persistence.yaml:1:10 this file extends itself",
        ),
        ("extends: gone.yaml\n", "the file 'gone.yaml' cannot be read: there is no such file"),
        ("extends: 3\n", "state_persistence.yaml:1:10 expected the name of a file"),
        ("extends: [a]\n", "state_persistence.yaml:1:10 expected the name of a file"),
        ("- a list\n", "expected a mapping of keys to values"),
        (
            "retention: {max_checkpoints: 3}\n",
            "state_persistence.yaml:1:1 a file without 'extends' must be complete; schema_version, state, checkpoint is missing",
        ),
        ("a: [\n", "not valid YAML"),
        ("", "the file is empty"),
    ],
)
def test_a_chain_that_leads_nowhere_is_told(tmp_path: Path, text: str, expected: str) -> None:
    (found,) = problems(tmp_path, text)

    assert expected in found


def test_a_chain_that_is_far_too_long_is_told(tmp_path: Path) -> None:
    for number in range(25):
        text = f"extends: {number + 1}.yaml\n"
        project(tmp_path, text, Path("config", f"{number}.yaml"))

    assert problems(tmp_path, "extends: 0.yaml\n") == [
        "19.yaml:1:10 more than 20 files extend one another"
    ]


def test_a_cycle_over_several_files_is_told(tmp_path: Path) -> None:
    project(tmp_path, "extends: state_persistence.yaml\n", Path("config", "other.yaml"))

    found = problems(tmp_path, "extends: other.yaml\n")

    assert found[0].startswith("other.yaml:1:10 this file extends itself")


def leaves(document: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in document.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key)


SHIPPED_KEYS = list(leaves(yaml.safe_load(SHIPPED.read_text())))

OTHERS: dict[str, Any] = {
    "enabled": True,
    "priority": 4,
    "incremental": True,
    "compress": True,
    "atomic": False,
    "max_attempts": 7,
    "backoff": "fixed",
    "automatic": False,
    "max_checkpoints": 99,
    "keep_last_n": 98,
    "delete_older_than_days": 97,
    "action": "keep",
    "archive_path": "elsewhere/{thread_id}/",
    "schema_version": "1.0.0",
    "description": "Something else",
    "required": ["thread_id"],
    "type": "string",
    "format": None,
    "default": 7,
    "enum": ["else"],
}
"""For every kind of key another value than the shipped one."""


def other_value(path: tuple[str, ...], shipped: Any) -> Any:
    name = path[-1]
    if name == "enabled":
        return not shipped
    other = OTHERS[name]
    return ["boolean"] if name == "type" and shipped == other else other


def at(document: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def nested(path: tuple[str, ...], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


@pytest.mark.parametrize("path", SHIPPED_KEYS, ids=".".join)
def test_every_shipped_key_is_read(tmp_path: Path, path: tuple[str, ...]) -> None:
    """Another value for it makes another configuration; nothing in the file is only decoration."""
    shipped = yaml.safe_load(SHIPPED.read_text())
    value = other_value(path, at(shipped, path))
    document = {"extends": "nightherd/state_schema.yaml", **nested(path, value)}
    if path[-1] == "enabled" and at(shipped, path[:-1]).get("priority") == 10:
        document = {
            "extends": "nightherd/state_schema.yaml",
            **nested(path[:-1], {"enabled": False, "priority": 9}),
        }

    found = load_persistence(project(tmp_path, json.dumps(document)))

    assert comparable(found) != comparable(load_persistence(tmp_path / "nothing"))


def comparable(found: Persistence) -> Any:
    return (
        found.schema_version,
        found.required,
        found.schema,
        found.triggers,
        found.performance,
        found.retention,
    )


def test_words_become_what_they_mean(tmp_path: Path) -> None:
    found = load_persistence(
        project(
            tmp_path,
            EXTENDS
            + "checkpoint: {performance: {retry: {backoff: linear, max_attempts: 4}}}\n"
            + "retention: {on_completion: {action: keep}}\n",
        )
    )

    patient = WriteRetry(max_attempts=100)
    assert patient.pause_ms(100) == patient.pause_ms(50) == 5_000, "nobody waits for years"
    retry = found.performance.retry
    assert (retry.backoff, retry.attempts) == (Backoff.LINEAR, 4)
    assert [retry.pause_ms(failures) for failures in (1, 2, 3)] == [50, 100, 150]
    assert found.retention.action is OnCompletion.KEEP


def test_a_fleet_with_a_wrong_file_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "nightherd.yaml").write_text("agents: []\n")
    project(tmp_path, EXTENDS + "retention: {max_checkpoints: none}\n", ".nightherd" / PROJECT_FILE)

    checked = check_fleet(tmp_path, environ={}, cwd=tmp_path)

    assert checked.loaded is None
    assert [Path(one.place.file).name for one in checked.problems] == ["state_persistence.yaml"]


def test_a_fleet_is_checked_with_the_file_of_the_state_directory_that_is_meant(
    tmp_path: Path,
) -> None:
    (tmp_path / "nightherd.yaml").write_text("agents: []\n")
    wrong = EXTENDS + "retention: {max_checkpoints: none}\n"
    project(tmp_path, wrong, "elsewhere" / PROJECT_FILE)

    def check(state_dir: Path | None) -> list[str]:
        checked = check_fleet(tmp_path, environ={}, cwd=tmp_path, state_dir=state_dir)
        return [one.message for one in checked.problems]

    assert check(None) == []
    assert check(tmp_path / "elsewhere") == ["expected a whole number, got the text 'none'"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("state: {schema: {properties: {hooks: null}}}\n", []),
        (
            "state: {required: [thread_id, team]}\n",
            ["2:1 a job's document that does not fit is not written: team: missing"],
        ),
        (
            "state:\n  schema: {properties: {suspend_reason: {enum: [limit, budget, error, null]}}}\n",
            [
                "2:1 a job's document that does not fit is not written: suspend_reason: 'approval' is not one"
                " of limit, budget, error, null; suspend_reason: 'rate_limit' is not one of limit, budget, error, null"
            ],
        ),
    ],
)
def test_a_schema_that_documents_do_not_fit_is_told(
    tmp_path: Path, text: str, expected: list[str]
) -> None:
    (tmp_path / "nightherd.yaml").write_text("agents: []\n")
    project(tmp_path, EXTENDS + text, ".nightherd" / PROJECT_FILE)

    checked = check_fleet(tmp_path, environ={}, cwd=tmp_path)

    assert checked.loaded is not None
    assert [
        f"{one.place.line}:{one.place.column} {one.message}" for one in checked.problems
    ] == expected
