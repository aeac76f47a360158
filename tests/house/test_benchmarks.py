"""The table of benchmarks: findings are read from what benchmarks print, and a broken limit is noticed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def run(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "benchmarks_run", repository / "benchmarks/run.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


OUTPUT = """
a bare interpreter takes 11.8 ms of CPU
nightherd --help: 4.5x (limit 8x)
list of jobs: 9.1x (limit 8x)
append: 6x (at least 5x)
fleet of 500 agents: 0.92 s (limit 1.5 s)
journal: 1,234.5 us
"""


def test_findings_are_read_from_what_a_benchmark_prints(run: ModuleType) -> None:
    found = list(run.findings("startup", OUTPUT))

    assert [(one.what, one.value, one.unit, one.limit) for one in found] == [
        ("nightherd --help", 4.5, "x", 8),
        ("list of jobs", 9.1, "x", 8),
        ("append", 6, "x", 5),
        ("fleet of 500 agents", 0.92, "s", 1.5),
        ("journal", 1234.5, "us", None),
    ]
    assert [one.is_kept for one in found] == [True, False, True, True, True]


def test_less_than_at_least_is_a_broken_limit(run: ModuleType) -> None:
    (one,) = run.findings("append", "append: 4.9x (at least 5x)")

    assert not one.is_kept
    assert one.cells[-1] == "BROKEN"
