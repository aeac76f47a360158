"""What every part of the demo uses: its directory and fleet, the screen, and ways to run and find jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from nightherd.cli.demo.stage import Workers
from nightherd.cli.jobs.command import Finished, result_line, run_and_watch
from nightherd.cli.operations import FleetClient
from nightherd.cli.screen.render import Screen, Style, neutralise
from nightherd.config.discovery import STATE_DIRECTORY
from nightherd.engine.operations.requests import Submit
from nightherd.errors import InterruptedRunError, NightherdError
from nightherd.model.agents.agent import Fleet
from nightherd.model.ids import JobId
from nightherd.model.jobs.job import JobStatus
from nightherd.model.journal.event import ToolResultEvent
from nightherd.views.jobs.jobs import observe_job
from nightherd.wiring.machine import is_at_work
from nightherd.wiring.stores import open_journals, open_reader, system_clock


@dataclass(frozen=True, slots=True)
class DemoContext:
    """One run of the demo, in one directory."""

    screen: Screen
    place: Path
    environ: Mapping[str, str]
    """The agents' environment."""
    git: str | None
    """The path of git."""
    fleet: Fleet
    workers: Workers
    """Processes of the demo's fleet."""

    @property
    def state_dir(self) -> Path:
        """Where the demo's fleet keeps its state."""
        return self.place / STATE_DIRECTORY

    def run(self, request: Submit) -> Finished:
        """Run a job here, and show what happens. One that does not complete is a fault of ours, unless it was cancelled."""
        try:
            finished = run_and_watch(
                self._client(), request, self.screen, is_shown=not self.screen.is_json
            )
        finally:
            self.workers.take_signals()
        self.show_result(finished)
        job = finished.job
        if job.status is JobStatus.CANCELLED:
            raise InterruptedRunError()
        if job.status is not JobStatus.COMPLETED:
            raise NightherdError(f"the demo's job {job.id} {job.status.value}: {job.error}")
        return finished

    def detach(self, agent: str) -> JobId:
        """Record a job for a worker, and show its id."""
        self.head(f"nightherd run {agent} --detach")
        job_id = self._client().perform(Submit(agent=agent)).id
        self.show(job_id)
        return job_id

    def _client(self) -> FleetClient:
        return FleetClient(state_dir=self.state_dir, environ=self.environ, fleet=self.fleet)

    def find(self, job_id: JobId) -> Finished:
        """Return the job as it is now."""
        with closing(open_reader(self.state_dir)) as reader:
            job, texts = reader.find_job(job_id), reader.find_texts(job_id)
            if job is None:
                raise NightherdError(f"the demo's job {job_id} is gone")
            seen = observe_job(reader, job, is_at_work, system_clock().now())
        return Finished(job=seen, texts=texts)

    def outcomes(self, finished: Finished) -> list[bool | None]:
        """Return whether each tool call of a job succeeded, first to last."""
        events = open_journals(self.state_dir).read(finished.job.id)
        return [event.success for event in events if isinstance(event, ToolResultEvent)]

    def command(self, *words: str, note: str = "") -> list[str]:
        """Run a command of nightherd in a process of its own; return what it printed."""
        self.head(f"nightherd {' '.join(words)}{note}")
        return self.workers.go_on(*words)

    def go_on(self) -> None:
        """Let another worker do what is left, and show what it printed."""
        self.head(self.workers.go_on_title())
        self.show("\n".join(self.workers.go_on()))

    def head(self, text: str) -> None:
        """Begin a section."""
        self.show("")
        self.show(self.screen.out.bold(f"== {text}"))

    def show(self, text: str) -> None:
        """Print a line, unless a program reads the output."""
        if not self.screen.is_json:
            self.screen.show(text)
            self.screen.flush()

    def show_result(self, finished: Finished) -> None:
        """Print how a job ended."""
        self.show(result_line(finished.job, self.screen.out))

    def show_diff(self, lines: Iterable[str]) -> None:
        """Print the lines of a diff in their colours."""
        self.show("\n".join(_coloured(line, self.screen.out) for line in lines))


def _coloured(line: str, style: Style) -> str:
    safe = neutralise(line)
    if line.startswith("+") and not line.startswith("+++"):
        return style.good(safe)
    if line.startswith("-") and not line.startswith("---"):
        return style.bad(safe)
    return safe
