"""Loading `state_persistence.yaml`: what is shipped, what a project lays over it, every mistake located."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from nightherd.config.documents import Documents
from nightherd.config.merge import like, plain_value, real_path
from nightherd.config.report import Findings
from nightherd.config.schema.persistence import FieldSchema, PersistenceFile, Triggers
from nightherd.config.validate import beginning, check
from nightherd.config.wording import described, listed
from nightherd.errors import ConfigInvalidError
from nightherd.files.yaml_nodes import Entry, MappingNode, Node, ScalarNode, problem_at
from nightherd.model.checkpoints.checkpoint import TriggerPoint
from nightherd.model.checkpoints.persistence import (
    ChatRetention,
    Cleanup,
    OnCompletion,
    Performance,
    Persistence,
    Retention,
    Trigger,
)
from nightherd.model.checkpoints.state_document import as_written, faults, sample_states
from nightherd.model.problem import Problem, Severity

SHIPPED_NAME = "nightherd/state_schema.yaml"
SHIPPED = Path(__file__).parent / "data" / "state_schema.yaml"
PROJECT_FILE = Path("config", "state_persistence.yaml")
"""Inside the state directory."""
LONGEST_CHAIN = 20


def load_persistence(state_dir: Path) -> Persistence:
    """What is shipped, with the project's own file laid over it; `ConfigInvalidError` with all mistakes."""
    findings = Findings()
    found = check_persistence(state_dir, findings)
    if found is None:
        raise ConfigInvalidError(findings.errors)
    return found


def check_project_file(state_dir: Path, findings: Findings) -> None:
    """Put what is wrong with the project's own file, if it has one, among `findings`."""
    project = state_dir / PROJECT_FILE
    if not (project.exists() or project.is_symlink()):
        return
    found = check_persistence(state_dir, findings)
    if found is not None:
        findings.extend(unwritable(found, Documents(findings).open(str(project))))


def unwritable(persistence: Persistence, project: Node | None) -> Iterator[Problem]:
    """Refuse to write what does not fit the schema, so that a change of the schema is noticed."""
    entry = project.entries.get("state") if isinstance(project, MappingNode) else None
    where = entry.key if entry is not None else project
    if where is None:
        return
    mistakes = dict.fromkeys(
        fault
        for state in sample_states()
        for fault in faults(as_written(state, persistence), persistence)
    )
    if mistakes:
        message = f"a job's document that does not fit is not written: {'; '.join(mistakes)}"
        yield problem_at(where, message, path="state", severity=Severity.NOTICE)


def check_persistence(state_dir: Path, findings: Findings) -> Persistence | None:
    """The same, mistakes put among `findings`."""
    project = state_dir / PROJECT_FILE
    is_project = project.exists() or project.is_symlink()
    documents = Documents(findings)
    before = len(findings.errors)
    node = _chained(str(project if is_project else SHIPPED), documents, findings, ())
    if node is None or len(findings.errors) > before:
        return None
    missing = [name for name in PersistenceFile.model_fields if name not in node.entries]
    if missing:
        message = f"a file without 'extends' must be complete; {listed(missing)} is missing"
        hint = f"begin it with: extends: {SHIPPED_NAME}"
        findings.add(problem_at(beginning(node), message, hint=hint))
    checked = check(PersistenceFile, node, findings, path="", partial=bool(missing))
    if checked is None:
        return None
    return _resolved(checked, is_project=is_project)


def _chained(
    path: str,
    documents: Documents,
    findings: Findings,
    chain: tuple[str, ...],
    *,
    named_by: Node | None = None,
) -> MappingNode | None:
    """The file with everything it extends laid under it."""
    node = documents.open(path, named_by=named_by, where="extends")
    if node is None:
        return None
    if not isinstance(node, MappingNode):
        message = f"expected a mapping of keys to values, got {described(node)}"
        findings.add(problem_at(node, message))
        return None
    named = node.get("extends")
    own = MappingNode(node.spot, {key: e for key, e in node.entries.items() if key != "extends"})
    if named is None:
        return own
    if not isinstance(named, ScalarNode) or not isinstance(plain_value(named), str):
        message = f"expected the name of a file, got {described(named)}"
        findings.add(problem_at(named, message, path="extends"))
        return None
    below_path = _named(named.text, path)
    files = (*chain, real_path(path))
    if real_path(below_path) in files:
        names = " -> ".join(Path(one).name for one in (*files, below_path))
        findings.add(problem_at(named, f"this file extends itself: {names}", path="extends"))
        return None
    if len(files) > LONGEST_CHAIN:
        message = f"more than {LONGEST_CHAIN} files extend one another"
        findings.add(problem_at(named, message, path="extends"))
        return None
    below = _chained(below_path, documents, findings, files, named_by=named)
    return None if below is None else _laid_over(below, own)


def _named(text: str, by: str) -> str:
    """The file that `extends` means: the shipped one, or one relative to the file that names it."""
    if text == SHIPPED_NAME:
        return str(SHIPPED)
    return os.path.join(os.path.dirname(by), text)  # noqa: PTH118, PTH120 (text in, text out)


def _laid_over(below: MappingNode, top: MappingNode, *, is_of_fields: bool = False) -> MappingNode:
    """`top` over `below`, key by key; null takes a key away. `is_of_fields` says that the keys are fields.

    A key of ours that was taken away stays as null: where it may be missing that means the same, and where
    it may not, the error is reported at its place.
    """
    entries = dict(below.entries)
    for key, entry in top.entries.items():
        known, value = entries.get(key), entry.value
        if known is None:
            entries[key] = entry
        elif isinstance(value, ScalarNode) and plain_value(value) is None:
            if is_of_fields or (key == "default" and not _is_default(key, top)):
                del entries[key]
            else:
                entries[key] = entry
        elif isinstance(known.value, MappingNode) and isinstance(value, MappingNode):
            fields = key == "properties" and not is_of_fields
            merged = _laid_over(known.value, value, is_of_fields=fields)
            entries[key] = Entry(entry.key, merged)
        else:
            entries[key] = entry
    return MappingNode(top.spot, entries)


def _is_default(key: str, mapping: MappingNode) -> bool:
    """Whether null is a value here: the default of a field may be null."""
    return key == "default" and ("type" in mapping.entries or "description" in mapping.entries)


def _resolved(file: PersistenceFile, *, is_project: bool) -> Persistence:
    retention, completion = file.retention, file.retention.on_completion
    return Persistence(
        schema_version=file.schema_version,
        required=file.state.required,
        schema=_schema(file.state.schema_),
        triggers=_triggers(file.checkpoint.triggers),
        performance=like(file.checkpoint.performance, Performance),
        retention=Retention(
            automatic=retention.automatic,
            max_checkpoints=retention.max_checkpoints,
            cleanup=like(retention.cleanup, Cleanup),
            chat=like(retention.chat, ChatRetention),
            action=OnCompletion(completion.action),
            archive_path=completion.archive_path,
        ),
        is_project=is_project,
    )


def _triggers(triggers: Triggers) -> Mapping[TriggerPoint, Trigger]:
    found = {point: getattr(triggers, point.value) for point in TriggerPoint}
    return {point: like(one, Trigger) for point, one in found.items() if one is not None}


def _schema(schema: FieldSchema) -> dict[str, object]:
    """The schema as a document: only what was said."""
    said: dict[str, object] = {}
    for name in schema.model_fields_set:
        value = getattr(schema, name)
        if name == "properties" and value is not None:
            said[name] = {key: _schema(inner) for key, inner in value.items()}
        elif isinstance(value, FieldSchema):
            said[name] = _schema(value)
        elif isinstance(value, tuple):
            said[name] = list(value)
        elif value is not None or name == "default":
            said[name] = value
    return said
