"""Tools in a container: they run as programs there, and what these answer is not believed."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from nightherd.model.secrets import knowing
from nightherd.runtimes.keeper.keepers import Keepers
from nightherd.runtimes.keeper.place import HOST, PROGRAMS, HostPlace
from nightherd.runtimes.tools.file_actions import READ_LIMIT_BYTES
from nightherd.runtimes.tools.files import Edit, Read, Write
from nightherd.runtimes.tools.program import ANSWER_LIMIT_BYTES
from nightherd.runtimes.tools.search import Glob, Grep
from nightherd.runtimes.tools.tool import Tool
from runtimes.stage import INSIDE, Stage, until

CALLS: list[tuple[Tool, dict[str, Any]]] = [
    (Read(), {"file_path": "file"}),
    (Write(), {"file_path": "file", "content": "b"}),
    (Edit(), {"file_path": "file", "old_string": "a", "new_string": "b"}),
    (Glob(), {"pattern": "*"}),
    (Grep(), {"pattern": "a"}),
]
every_call = pytest.mark.parametrize(("tool", "input"), CALLS, ids=[one.name for one, _ in CALLS])


def stage_with(tmp_path: Path, program: str) -> Stage:
    """A stage in whose container our programs are another one."""
    programs, directory = tmp_path / "programs", tmp_path / "workspace"
    for one in (programs, directory):
        one.mkdir()
    for name in ("file_actions.py", "search_program.py"):
        (programs / name).write_text(program)
    (directory / "file").write_text("a")
    place = HostPlace(programs=str(programs), is_container=True)
    return Stage(directory, keepers=Keepers(place=place))


@every_call
def test_no_tool_touches_a_file_but_by_its_program(
    tmp_path: Path, tool: Tool, input: dict[str, Any]
) -> None:
    stage = stage_with(tmp_path, "import sys; sys.exit('no such luck')")

    outcome = stage.use(tool, **input)

    assert not outcome.success
    assert "no such luck" in (outcome.error or "")
    assert (stage.directory / "file").read_text() == "a"


@pytest.mark.parametrize(
    "printed",
    [
        "",
        "x",
        "[]",
        "3",
        "[" * 100_000,
        '{"error": 3}',
        '{"content": "not base64!"}',
        '{"content": null, "size": "big", "count": []}',
        "x" * (ANSWER_LIMIT_BYTES * 2),
    ],
    ids=lambda text: text[:20],
)
@pytest.mark.parametrize(("tool", "input"), CALLS[:3], ids=[one.name for one, _ in CALLS[:3]])
def test_an_answer_that_cannot_be_read_is_a_failure(
    tmp_path: Path, tool: Tool, input: dict[str, Any], printed: str
) -> None:
    (tmp_path / "answer").write_text(printed)
    stage = stage_with(tmp_path, f"print(open({str(tmp_path / 'answer')!r}).read())")

    outcome = stage.use(tool, **input)

    assert not outcome.success
    assert outcome.error
    assert len(outcome.error) < 10_000


@every_call
def test_a_program_that_is_killed_is_no_result(
    tmp_path: Path, tool: Tool, input: dict[str, Any]
) -> None:
    stage = stage_with(tmp_path, "import os; os.kill(os.getpid(), 9)")

    outcome = stage.use(tool, **input)

    assert (outcome.success, outcome.is_killed) == (False, True)


@every_call
def test_an_interpreter_that_is_not_there_is_a_failure(
    stage: Stage, tool: Tool, input: dict[str, Any]
) -> None:
    place = HostPlace(python="/no/such/python3", is_container=True)

    outcome = Stage(stage.directory, keepers=Keepers(place=place)).use(tool, **input)

    assert "could not be started" in (outcome.error or "")


@every_call
def test_an_interpreter_may_be_given_by_its_name(
    stage: Stage, tool: Tool, input: dict[str, Any]
) -> None:
    (stage.directory / "file").write_text("a")
    place = HostPlace(python="python3", is_container=True)

    outcome = Stage(stage.directory, keepers=Keepers(place=place)).use(tool, **input)

    assert outcome.success, outcome.error


def test_a_change_that_has_begun_is_finished_when_the_call_is_cancelled(tmp_path: Path) -> None:
    """As on this machine: the file is whole, old or new, and nothing is left beside it."""
    begun = tmp_path / "begun"
    source = (Path(PROGRAMS) / "file_actions.py").read_text()
    slow = f"open({str(begun)!r}, 'w').close(); __import__('time').sleep(0.1); os.replace("
    stage = stage_with(tmp_path, source.replace("os.replace(", slow))

    async def cancel() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Write().run, {"file_path": "file", "content": "new"}, stage.context())
            await until(begun.exists)
            tasks.cancel_scope.cancel()

    anyio.run(cancel)

    assert [path.name for path in stage.directory.iterdir()] == ["file"]
    assert (stage.directory / "file").read_text() == "new"


def test_a_long_line_of_secrets_is_not_read_forever(stage_anywhere: Stage) -> None:
    """Masked, it is shorter than the limit; it is too long for a reading all the same."""
    secret = "qwertyuiopasdfghjklzxcvbnm0123456789"
    (stage_anywhere.directory / "long").write_text(secret * 20_000)
    context = stage_anywhere.context(secrets=knowing({secret: "K"}))

    outcome = anyio.run(Read().run, {"file_path": "long"}, context)

    assert outcome.result is not None
    assert "[... line 1 of long is too long; the file has 720,000 bytes ...]" in outcome.result
    assert secret[:6] not in outcome.result


def test_the_answer_to_a_file_of_any_bytes_fits(stage_anywhere: Stage) -> None:
    content = bytes(range(1, 256)) * 2_000
    (stage_anywhere.directory / "bytes").write_bytes(content)

    result = stage_anywhere.use(Read(), file_path="bytes").result or ""

    lines = content[:READ_LIMIT_BYTES].rpartition(b"\n")[0] + b"\n"
    assert result.startswith(lines.decode(errors="replace"))
    assert "go on with offset" in result


@pytest.mark.parametrize("name", ["file_actions.py", "search_program.py"])
def test_programs_are_written_for_an_old_python(name: str) -> None:
    source = (Path(PROGRAMS) / name).read_text()

    tree = ast.parse(source, feature_version=(3, 9))

    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {
        name.split(".")[0]
        for node in imported
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [one.name for one in node.names]
        )
    }
    assert modules <= {*sys.stdlib_module_names, "file_actions"}


def test_a_branch_of_keepers_is_where_they_are_unless_it_is_moved() -> None:
    worker = Keepers()

    moved = worker.branch(place=INSIDE)

    assert worker.place is HOST
    assert worker.branch().place is HOST
    assert moved.place is INSIDE
    assert moved.branch().place is INSIDE
