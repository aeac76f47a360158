"""Watching the fleet's files: a change is noticed, who asks gets them loaded, and nothing stays behind."""

from __future__ import annotations

import threading
from pathlib import Path

import anyio
import pytest

from nightherd.daemon import fleet_files as watching
from nightherd.daemon.fleet_files import FleetFiles, Loading, Watch

PATIENCE_S = 60.0


@pytest.fixture
def files(tmp_path: Path) -> FleetFiles:
    rewrite(tmp_path, "a")
    return FleetFiles(tmp_path / "nightherd.yaml", {})


def rewrite(folder: Path, *names: str) -> None:
    """A fleet of these agents, whole at once."""
    agents = ", ".join(f"{{name: {name}, runtime: scripted, script: []}}" for name in names)
    fresh = folder / "fresh"
    fresh.write_text(f"reload: auto\nagents: [{agents}]\n")
    fresh.replace(folder / "nightherd.yaml")


def agents_of(loading: Loading) -> list[str]:
    assert loading.fleet is not None
    return list(loading.fleet.agents)


def test_every_change_is_loaded_also_one_from_before_somebody_waited(
    files: FleetFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LOOK_S", 0.01)
    folder = files.file.parent

    async def main() -> None:
        watch = Watch(files, files.load_first())
        rewrite(folder, "a", "b")
        with anyio.fail_after(PATIENCE_S):
            assert agents_of(await watch.next()) == ["a", "b"]
            found: list[str] = []

            async def wait() -> None:
                found.extend(agents_of(await watch.next()))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                rewrite(folder, "c")
            assert found == ["c"]

    anyio.run(main)


def test_one_who_asks_gets_files_that_look_the_same_loaded(
    files: FleetFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LOOK_S", PATIENCE_S)

    async def main() -> None:
        watch = Watch(files, files.load_first())
        with anyio.fail_after(PATIENCE_S / 2):
            watch.ask()
            first = await watch.next()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(watch.next)
                await anyio.wait_all_tasks_blocked()
                watch.ask()
        assert agents_of(first) == ["a"]

    anyio.run(main)


def test_nothing_waits_any_longer_when_nobody_does(
    files: FleetFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that looks must not keep the process from ending."""
    monkeypatch.setattr(watching, "LOOK_S", 10 * PATIENCE_S)

    async def main() -> None:
        watch = Watch(files, files.load_first())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch.next)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()

    before = set(threading.enumerate())
    anyio.run(main)

    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
