"""Runtimes of other packages: found by their entry point, run, limited and resumed like ours."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nightherd.wiring.runtimes import RUNTIMES, forget_entry_points
from surfaces.drivers import Cli

FLEET = """\
agents:
  - name: counter
    runtime: toy
    default_prompt: go
    session: {mode: persistent}
"""
POINTS = "[nightherd.runtimes]\n"
METADATA = "Metadata-Version: 2.1\nName: toy-runtime\nVersion: 1.0\n"


def install(site: Path, points: str) -> None:
    """Put the module and the metadata of its package where Python finds them."""
    info = site / "toy_runtime-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(POINTS + points)
    shutil.copy(Path(__file__).with_name("toy_runtime.py"), site)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of packages, and a fleet file with an agent of runtime `toy`; the test stands beside them."""
    forget_entry_points()
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    yield site
    sys.modules.pop("toy_runtime", None)
    forget_entry_points()


@pytest.fixture
def toy(site: Path) -> Path:
    """The same, with the package of the runtime installed."""
    install(site, "toy = toy_runtime:RUNTIME\n")
    return site


def test_agent_runs_and_its_session_is_resumed(toy: Path, cli: Cli) -> None:
    first = cli("run", "counter")
    second = cli("run", "counter", "-p", "more")

    assert (first.code, second.code) == (0, 0), (first, second)
    assert "answer 3 to go" in first.out
    assert "answer 6 to more" in second.out


@pytest.mark.parametrize("limit", ["turns=2", "spend=0.02"])
def test_limits_are_kept_and_a_raised_one_lets_it_go_on(toy: Path, cli: Cli, limit: str) -> None:
    stopped = cli("run", "counter", "--limit", limit)
    job = cli("jobs", "list", "--json").data[0]
    raised = limit.partition("=")[0] + "=5"

    resumed = cli("jobs", "resume", job["id"], "--raise", raised)

    assert stopped.code == 6, stopped
    assert "answer 3" not in stopped.out
    assert resumed.code == 0, resumed
    assert "answer 3 to go" in resumed.out


def test_doctor_shows_it(toy: Path, cli: Cli) -> None:
    checks = {check["name"]: check for check in cli("doctor", "--json").data["checks"]}

    assert checks["runtimes"]["level"] == "ok"
    assert checks["runtimes"]["notes"] == ["counter: runtime toy is installed"]


def test_schema_for_editors_names_it(toy: Path, cli: Cli) -> None:
    schema = cli("config", "schema").out

    assert '"toy"' in schema
    assert all(f'"{name}"' in schema for name in RUNTIMES)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("denied_tools", "[Bash]"),
        ("approvals", '[{tool: "Bash(git push:*)"}]'),
        ("questions", "true"),
        ("operation", "review"),
    ],
)
def test_setting_that_it_does_not_obey_keeps_the_agent_from_running(
    toy: Path, cli: Cli, key: str, value: str
) -> None:
    Path("nightherd.yaml").write_text(f"{FLEET}    {key}: {value}\n")

    refused = cli("run", "counter")

    assert refused.code != 0
    assert f"runtime toy does not support '{key}'" in refused.err
    assert "nightherd.yaml:6:5" in refused.err


def test_agent_that_waits_for_nobody_runs(toy: Path, cli: Cli) -> None:
    Path("nightherd.yaml").write_text(f"{FLEET}    operation: autonomous\n    questions: false\n")

    assert cli("run", "counter").code == 0


def test_unknown_name_is_reported_at_its_place_with_the_nearest(toy: Path, cli: Cli) -> None:
    Path("nightherd.yaml").write_text(FLEET.replace("toy", "toyy"))

    refused = cli("config", "check")

    assert refused.code != 0
    assert "nightherd.yaml:3:14: 'toyy' is not one of sdk, cli, native, scripted, toy" in (
        refused.out + refused.err
    )
    assert "did you mean 'toy'?" in refused.out + refused.err


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ("", "'toy' is not one of sdk, cli, native, scripted"),
        ("toy = nosuch_module:RUNTIME\n", "cannot be loaded from nosuch_module:RUNTIME"),
        ("toy = toy_runtime:ToyRuntime\n", "is not a RegisteredRuntime named 'toy'"),
    ],
    ids=["absent", "broken", "wrong"],
)
def test_package_that_cannot_be_used_is_reported_at_its_place(
    site: Path, cli: Cli, points: str, message: str
) -> None:
    install(site, points)

    refused = cli("run", "counter")

    assert refused.code == 78, refused
    assert message in refused.err
    assert "nightherd.yaml:3:14" in refused.err


def test_no_other_package_replaces_ours(site: Path, cli: Cli) -> None:
    install(site, "scripted = toy_runtime:RUNTIME\n")
    Path("nightherd.yaml").write_text(
        FLEET.replace("toy", "scripted") + "    script:\n      - say: ours\n"
    )

    assert "ours" in cli("run", "counter").out
    assert "toy_runtime" not in sys.modules


def test_runtime_that_declares_nothing_is_trusted_with_nothing(site: Path, cli: Cli) -> None:
    install(site, "quiet = toy_runtime:QUIET\n")
    servers = "    mcp_servers: {desk: {command: desk}}\n"
    Path("nightherd.yaml").write_text(FLEET.replace("toy", "quiet") + servers)

    checked = cli("config", "check")
    limited = cli("run", "counter", "--limit", "spend=1")
    free = cli("run", "counter")

    assert "runtime quiet does not support 'mcp_servers'" in checked.out + checked.err
    assert limited.code != 0
    assert "runtime 'quiet' does not report what answers cost" in limited.err
    assert free.code == 0, free
