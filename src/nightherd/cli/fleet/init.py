"""`nightherd init`: a fleet file that works at once, with the schema that editors check it by."""

from __future__ import annotations

import json
from pathlib import Path

import click

from nightherd.cli.invocation import Invocation, json_option
from nightherd.config.discovery import FLEET_FILE_NAMES, STATE_DIRECTORY, fleet_file_in
from nightherd.config.json_schema import json_schema
from nightherd.errors import NightherdError, RefusedError
from nightherd.wiring.runtimes import runtime_names
from nightherd.wiring.stores import system_clock

SCHEMA = Path(STATE_DIRECTORY) / "schema" / "fleet.json"
IGNORED = f"{STATE_DIRECTORY}/"

FLEET = f"""\
# yaml-language-server: $schema={SCHEMA}
#
# A nightherd fleet: which agents there are, and how each of them runs.
#   nightherd config check     every mistake in this file, with line and column
#   nightherd run hello        give the agent below a job

fleet:
  name: my-fleet

agents:
  - name: hello
    description: Writes a greeting to a file and reads it back.
    # A scripted agent plays the steps below. Its tools are real; no model, no key, no network.
    runtime: scripted
    allowed_tools: [Bash]
    default_prompt: the night shift
    script:
      - think: I am asked to greet ${{prompt}}.
      - say: I will write a greeting for ${{prompt}}.
      - tool: Write
        input:
          file_path: hello.txt
          content: |
            Hello, ${{prompt}}!
      - usage: {{input_tokens: 180, output_tokens: 42, cost_usd: 0.0012}}
      - tool: Bash
        input:
          command: cat hello.txt
      - say: The greeting for ${{prompt}} is in hello.txt.
      - usage: {{input_tokens: 240, output_tokens: 18, cost_usd: 0.0009}}
"""


@click.command("init", epilog="Example: nightherd init my-fleet")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace an existing fleet file.")
@json_option
@click.pass_obj
def init(invocation: Invocation, directory: Path | None, force: bool) -> None:
    """Create a fleet file. It goes into DIR (the current directory by default) and has one agent that runs at once."""
    screen = invocation.screen
    target = invocation.cwd / directory if directory is not None else invocation.cwd
    present = fleet_file_in(target)
    if present is not None and not force:
        raise RefusedError(f"{present} already exists", hint="nightherd init --force")
    try:
        written = write_fleet(target, FLEET, name=present.name if present else FLEET_FILE_NAMES[0])
    except OSError as error:
        where = error.filename or target
        raise NightherdError(f"cannot write {where}: {error.strerror or error}") from error
    if screen.is_json:
        data = {"directory": str(target), "files": [str(path) for path in written]}
        screen.document("init", data, system_clock().now())
        return
    for path in written:
        screen.show(str(path.relative_to(target)))
    screen.flush()
    enter = f"cd {directory} && " if directory is not None else ""
    screen.say(f"  try: {screen.err.bold(enter + 'nightherd run hello')}")


def write_fleet(directory: Path, text: str, *, name: str = FLEET_FILE_NAMES[0]) -> list[Path]:
    """Write the fleet file, its schema and, in a git work tree, the line that keeps state out of git."""
    directory.mkdir(parents=True, exist_ok=True)
    fleet, schema = directory / name, directory / SCHEMA
    (directory / STATE_DIRECTORY).mkdir(mode=0o700, exist_ok=True)
    schema.parent.mkdir(mode=0o700, exist_ok=True)
    schema.touch(mode=0o600)
    schema.write_text(
        json.dumps(json_schema(runtimes=runtime_names()), indent=1, ensure_ascii=False) + "\n"
    )
    written = [fleet, schema]
    if _is_in_git(directory) and _ignore(directory / ".gitignore"):
        written.append(directory / ".gitignore")
    fleet.write_text(text, encoding="utf-8")
    return written


def _is_in_git(directory: Path) -> bool:
    absolute = directory.resolve()
    return any((above / ".git").exists() for above in (absolute, *absolute.parents))


def _ignore(file: Path) -> bool:
    """Make `file` name the state directory; whether it had to be changed."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    known = {line.strip().strip("/") for line in text.splitlines()}
    if STATE_DIRECTORY in known:
        return False
    gap = "" if not text or text.endswith("\n") else "\n"
    file.write_text(f"{text}{gap}{IGNORED}\n", encoding="utf-8")
    return True
