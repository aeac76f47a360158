"""`demo`: real work, shown as it happens, gone afterwards unless it is to be kept."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from components import Components
from document_blocks import blocks
from nightherd.cli.demo import demo, kills
from nightherd.cli.demo.stage import FILES
from surfaces.drivers import Cli


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Throw-away directories are made here, so that what is left over can be seen."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the native runtime is not installed: no worker has to import it."""
    monkeypatch.setattr(demo, "can_run", lambda name: False)


def test_demo_fixes_the_fault_and_prints_all_that_the_readme_shows(
    repository: Path, nowhere: Path, temporary: Path, components: Components
) -> None:
    components.program("git")
    (sample,) = (block for block in blocks(repository / "README.md") if block.language == "text")
    sampled = [alike(line) for line in sample.text.splitlines() if line.strip(" .")]

    result = subprocess.run(
        [sys.executable, "-m", "nightherd", "demo"],
        cwd=nowhere,
        env={**os.environ, "TMPDIR": str(temporary), "NO_COLOR": "1", "COLUMNS": "100"},
        capture_output=True,
        text=True,
    )

    assert result.returncode == 0, result.stderr
    for shown in (
        "FAILED (failures=1)",
        "-    return sum(prices) * (100 + discount) / 100",
        "+    return sum(prices) * (100 - discount) / 100",
        ".jsonl",
        '"type":"system"',
        "== git diff",
        "== nightherd worker & kill -9 $!",
        "killed in the middle of check 1 of 5",
        "‖ suspended (limit), 2 turns, $0.40,",
        "the next turn could bring it to $0.60, of the job's limit of $0.50",
        "--raise spend=2.00 & kill -9 $!",
        "killed in the middle of check 4 of 5",
        "\nrescued job-",
        "check 1\ncheck 2\ncheck 3\ncheck 4\ncheck 5\n",
        "== nightherd workflow run ship --detach\nrun-",
        "the worker is killed while the run waits; nothing has arrived at the remote",
        "== nightherd inbox approve @last\nask-",
        "exactly one push arrived\nSubtract the discount\n",
        "== nightherd session fork sess-",
        '+BANNER = "20 % off everything"',
        '-BANNER = ""\n+BANNER = "Buy two, get one free"\n',
        "both begin with the same 5 messages",
        "your own checkout is as it was\nchecks.txt  pricing.py  test_pricing.py\n",
        "\nmerged into ",
        '== cat shop/banner.py\nBANNER = "Buy two, get one free"\n',
        "total $1.0626",
        "nightherd init my-fleet",
    ):
        assert shown in result.stdout, shown
    for drawn in (r"✔ fix +agent editor +succeeded", r"✔ push +command bash +succeeded"):
        assert re.search(drawn, result.stdout), drawn
    assert result.stdout.count("✔ completed") == 16
    assert list(temporary.iterdir()) == []
    printed = iter([alike(line) for line in result.stdout.splitlines()])
    assert [line for line in sampled if line not in printed] == []


def alike(line: str) -> str:
    """Return the line without what differs each time: how long it took, and which job it was."""
    line = re.sub(r"(job-[\d-]{10}-\w{6}|sess-\w{8})", "id", line.rstrip())
    return re.sub(r"\b(\d+h)?(\d+m)?\d+(\.\d+)?m?s\b", "...s", line)


@pytest.mark.usefixtures("quick")
def test_kept_demo_can_be_tried_with_the_commands_it_names(
    cli: Cli, nowhere: Path, components: Components
) -> None:
    components.program("git")
    result = cli("demo", "--dir", "kept")

    assert result.code == 0
    named = [line.strip() for line in result.out.partition("== Try next\n")[2].splitlines()]
    assert named[0] == f"cd {nowhere / 'kept'}"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-e", "-c", "\n".join(named)],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "FAILED (failures=1)" in done.stdout
    assert "✔ completed" in done.stderr


def test_commands_named_after_a_demo_that_is_gone_work_too(cli: Cli, nowhere: Path) -> None:
    assert cli("init", "my-fleet").code == 0
    assert cli("--help").code == 0


@pytest.mark.usefixtures("quick")
def test_demo_for_programs_is_one_document_and_needs_no_git(
    cli: Cli, nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = nowhere / "tools"
    tools.mkdir()
    for name in ("sh", "bash", "cat", "env", "sleep"):
        found = shutil.which(name)
        if found is not None:
            (tools / name).symlink_to(found)
    (tools / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setattr(sys, "executable", str(tools / "python3"))
    # That name of the interpreter does not lead to where nightherd is installed.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))

    result = cli("demo", "--json")

    assert (result.code, result.err) == (0, "")
    assert result.document["schema"] == "nightherd/v1/demo"
    assert [job["success"] for job in result.data["jobs"]] == [True] * 6
    assert "--- a/pricing.py" in result.data["diff"]
    assert "+    return sum(prices) * (100 - discount) / 100" in result.data["diff"]
    assert result.data["counted"] == [f"check {number}" for number in range(1, 6)]
    assert result.data["published"] == ["Subtract the discount"]
    assert result.data["forked_diffs"] == []
    assert result.data["directory"] is None


def test_directory_with_something_in_it_is_refused(cli: Cli, nowhere: Path) -> None:
    (nowhere / "full").mkdir()
    (nowhere / "full" / "mine").write_text("mine")

    result = cli("demo", "--dir", "full")

    assert result.code == 5
    assert [path.name for path in (nowhere / "full").iterdir()] == ["mine"]


def test_demo_that_goes_wrong_says_so_and_cleans_up(
    cli: Cli, nowhere: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        FILES, "pricing.py", FILES["pricing.py"].replace("+ discount", "- discount")
    )

    result = cli("demo")

    assert result.code == 1
    assert "did not fail first" in result.err
    assert list(temporary.iterdir()) == []


@pytest.mark.usefixtures("quick")
def test_demo_says_when_a_check_is_missing(
    cli: Cli, nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kills, "CHECK_COUNT", 6)

    result = cli("demo")

    assert result.code == 1
    assert "the checks are wrong" in result.err


def test_interrupted_demo_leaves_nothing_behind(nowhere: Path, temporary: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "nightherd", "demo"],
        cwd=nowhere,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if b"I will run the tests" in line:
            break

    process.send_signal(2)
    process.communicate()

    assert process.returncode == 130
    assert list(temporary.iterdir()) == []
