"""Journals of every version so far are read as they were meant (INV-FORMATS)."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nightherd.errors import JournalError
from nightherd.journal.files import JournalFiles
from nightherd.model.ids import JobId
from nightherd.model.journal.event import SystemEvent, payload_of
from nightherd.testing.contracts.journal import begin, say
from nightherd.testing.determinism import FakeClock

CORPUS = Path(__file__).resolve().parent.parent / "corpus" / "journal"
FILES = sorted(CORPUS.glob("*/*.jsonl"))

each_file = pytest.mark.parametrize(
    "file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}"
)


def expected_of(file: Path) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads(file.with_suffix(".expected.json").read_bytes())
    return expected


@each_file
def test_corpus_journal_reads_as_it_always_did(file: Path) -> None:
    expected = expected_of(file)
    journals = JournalFiles(file.parent, CORPUS / "v1/blobs", clock=FakeClock())
    job_id = JobId(file.stem)

    if "error" in expected:
        with pytest.raises(JournalError) as caught:
            list(journals.read(job_id))
        assert caught.value.code == expected["error"]
        return
    events = list(journals.read(job_id))
    findings = msgspec.to_builtins(journals.examine(job_id))

    assert msgspec.to_builtins(events) == expected["events"]
    bad = [[line["offset"], line["length"]] for line in findings.pop("bad_lines")]
    assert {**findings, "bad_lines": bad} == expected["findings"]
    assert journals.last(job_id, 1_000, load_blobs=True) == events
    for event in events:
        assert not isinstance(event, SystemEvent) or payload_of(event).subtype is event.subtype


@each_file
def test_corpus_journal_goes_on_from_where_it_ended(file: Path, tmp_path: Path) -> None:
    expected = expected_of(file)
    shutil.copy(file, tmp_path)
    journals = JournalFiles(tmp_path, tmp_path / "blobs", clock=FakeClock())
    job_id = JobId(file.stem)

    if "error" in expected:
        with pytest.raises(JournalError):
            begin(journals, epoch=9, job_id=job_id)
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()
        return
    added = begin(journals, epoch=9, job_id=job_id).append(say("next"))

    seqs = [event.seq for event in journals.read(job_id, load_blobs=False)]
    assert seqs[-1] == added.seq
    assert len(seqs) >= len(expected["events"]) + 1
    assert journals.examine(job_id).missing == expected["findings"]["missing"]


def test_corpus_files_are_the_ones_that_were_added() -> None:
    lines = [line.split("  ") for line in (CORPUS / "SHA256SUMS").read_text().splitlines()]
    sums = {name: digest for digest, name in lines}

    found = {
        str(path.relative_to(CORPUS)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in CORPUS.glob("*/**/*")
        if path.is_file()
    }

    assert found == sums
