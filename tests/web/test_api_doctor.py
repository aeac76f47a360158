"""The doctor over HTTP: what it finds, one examination at a time, and never in the way of the server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from nightherd.errors import NightherdError, StateError
from nightherd.model.access.role import Role
from nightherd.model.doctor import Level
from nightherd.views.health.doctor import doctor_document
from nightherd.web.health.doctor_process import Diagnosis, run_doctor
from nightherd.web.health.examiner import KEPT, Examiner
from surfaces.drivers import Cli
from web.browser import named_token, on_port
from web.web_world import ENVIRON, FLEET, served

NOW = datetime(2026, 11, 15, 3, tzinfo=UTC)


class Hospital:
    """Examinations that end when a test says so."""

    def __init__(self) -> None:
        self.now = NOW
        self.begun: list[bool] = []
        self.under_way = 0
        self.error: Exception | None = None
        self._doors: list[anyio.Event] = []
        self._arrived = anyio.Event()

    async def examine(self, is_deep: bool) -> Diagnosis:
        self.under_way += 1
        assert self.under_way == 1, "two at once"
        self.begun.append(is_deep)
        self._doors.append(anyio.Event())
        self._arrived.set()
        self._arrived = anyio.Event()
        try:
            await self._doors[-1].wait()
        finally:
            self.under_way -= 1
        if self.error is not None:
            raise self.error
        name = f"number {len(self.begun)}"
        return Diagnosis(as_of=self.now, data=doctor_document(name, ()))

    def end(self) -> None:
        self._doors[-1].set()

    async def wait_for(self, count: int) -> None:
        while len(self.begun) < count:
            await self._arrived.wait()


async def ask(examiner: Examiner, said: list[str], *, is_deep: bool = False) -> None:
    found = await examiner.diagnose(is_deep=is_deep, patience_s=60)
    said.append("nothing" if found is None else found.data["state_dir"])


def test_requests_that_come_meanwhile_get_the_same_result() -> None:
    async def main() -> None:
        hospital, said = Hospital(), list[str]()
        async with Examiner(hospital.examine, lambda: hospital.now) as examiner:
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(ask, examiner, said)
                await hospital.wait_for(1)
                await anyio.wait_all_tasks_blocked()
                hospital.end()
            assert said == ["number 1"] * 3
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, examiner, said)
                await hospital.wait_for(2)
                hospital.end()

        assert said[3:] == ["number 2"]

    anyio.run(main)


def test_a_deep_examination_follows_one_that_is_not() -> None:
    async def main() -> None:
        hospital, said = Hospital(), list[str]()
        async with (
            Examiner(hospital.examine, lambda: hospital.now) as examiner,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(ask, examiner, said)
            await hospital.wait_for(1)

            async def ask_deep() -> None:
                await ask(examiner, said, is_deep=True)

            tasks.start_soon(ask_deep)
            await anyio.wait_all_tasks_blocked()
            hospital.end()
            await hospital.wait_for(2)
            tasks.start_soon(ask, examiner, said)
            await anyio.wait_all_tasks_blocked()
            hospital.end()

        assert hospital.begun == [False, True]
        assert said == ["number 1", "number 2", "number 2"]

    anyio.run(main)


def test_a_result_nobody_waited_for_is_given_to_the_next_who_asks() -> None:
    async def main() -> None:
        hospital = Hospital()
        async with Examiner(hospital.examine, lambda: hospital.now) as examiner:
            late = await examiner.diagnose(is_deep=False, patience_s=0)
            await hospital.wait_for(1)
            hospital.end()
            await anyio.wait_all_tasks_blocked()

            kept = await examiner.diagnose(is_deep=False, patience_s=60)

            assert late is None
            assert kept is not None
            assert (kept.data["state_dir"], hospital.begun) == ("number 1", [False])

            again = await examiner.diagnose(is_deep=False, patience_s=0)
            await hospital.wait_for(2)
            hospital.end()
            await anyio.wait_all_tasks_blocked()
            hospital.now += KEPT + timedelta(seconds=1)
            old = await examiner.diagnose(is_deep=False, patience_s=0)
            await hospital.wait_for(3)
            assert (again, old, len(hospital.begun)) == (None, None, 3)

    anyio.run(main)


@pytest.mark.parametrize("error", [StateError("it broke"), ValueError("it broke")])
def test_what_goes_wrong_is_told_and_the_next_request_begins_anew(error: Exception) -> None:
    async def main() -> None:
        hospital = Hospital()
        async with Examiner(hospital.examine, lambda: hospital.now) as examiner:
            hospital.error = error
            async with anyio.create_task_group() as tasks:

                async def fail() -> None:
                    with pytest.raises(NightherdError, match="it broke"):
                        await examiner.diagnose(is_deep=False, patience_s=60)

                tasks.start_soon(fail)
                await hospital.wait_for(1)
                hospital.end()
            hospital.error, said = None, list[str]()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, examiner, said)
                await hospital.wait_for(2)
                hospital.end()

        assert said == ["number 2"]

    anyio.run(main)


def test_what_is_found_is_that_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)

    async def main() -> None:
        async with served(tmp_path) as world:
            job = await world.run()
            (tmp_path / ".nightherd" / "jobs" / f"{job}.jsonl").chmod(0o644)

            answer = await world.get("/v1/doctor")
            said = await anyio.to_thread.run_sync(cli, "doctor", "--json")

            assert answer.document["schema"] == "nightherd/v1/doctor"
            assert [one["name"] for one in answer.data["checks"]] == [
                one["name"] for one in said.data["checks"]
            ]
            (finding,) = (
                one for check in answer.data["checks"] for one in check["findings"] if one["path"]
            )
            assert (finding["level"], finding["is_fixed"]) == (Level.WARNING, False)
            assert answer.data["state_dir"] == str(tmp_path / ".nightherd")

            deep = await world.get("/v1/doctor?verify=true")
            names = {one["name"] for one in deep.data["checks"]}
            assert "journals" in names - {one["name"] for one in answer.data["checks"]}

    anyio.run(main)


def test_a_viewer_sees_it_and_only_an_operator_verifies(tmp_path: Path) -> None:
    async def main() -> None:
        async with on_port(tmp_path) as world:
            (port,) = world.ports
            vera = f"Bearer {await named_token(world, 'vera', Role.VIEWER)}"

            refused = await world.ask(
                "GET", "/v1/doctor?verify=true", port=port, authorization=vera
            )
            seen = await world.ask("GET", "/v1/doctor", port=port, authorization=vera)

            assert (refused.status, seen.status) == (403, 200)

    anyio.run(main)


def test_files_that_agents_write_are_not_run_as_modules(tmp_path: Path) -> None:
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    state = tmp_path / ".nightherd"
    state.mkdir()
    for directory in (tmp_path, state):
        for name in ("click", "msgspec", "nightherd"):
            (directory / f"{name}.py").write_text("raise SystemExit('a planted module ran')\n")

    async def main() -> None:
        file = tmp_path / "nightherd.yaml"
        found = await run_doctor(file, state, ENVIRON, is_deep=False)

        assert found.data["state_dir"] == str(state)

    anyio.run(main)


def test_doctor_that_fails_says_why(tmp_path: Path) -> None:
    (tmp_path / "nightherd.yaml").write_text(FLEET)
    (tmp_path / "state").mkdir()

    async def main() -> None:
        with pytest.raises(StateError, match=r"the doctor failed: +\S"):
            await run_doctor(
                tmp_path / "nightherd.yaml",
                tmp_path / "state",
                {**ENVIRON, "PYTHONHOME": str(tmp_path)},
                is_deep=False,
            )

    anyio.run(main)
