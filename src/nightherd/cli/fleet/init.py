"""`nightherd init`: a fleet file that works at once, with the schema that editors check it by."""

from __future__ import annotations

import json
from pathlib import Path

import click

from nightherd.cli.fleet.template import (
    TEMPLATES,
    refuse_existing,
    template_texts,
    without_worktrees,
    write_template,
)
from nightherd.cli.invocation import Invocation, json_option
from nightherd.cli.screen.render import Screen
from nightherd.config.discovery import FLEET_FILE_NAMES, STATE_DIRECTORY, fleet_file_in
from nightherd.config.json_schema import json_schema
from nightherd.errors import NightherdError, RefusedError
from nightherd.wiring.runtimes import runtime_names
from nightherd.wiring.stores import system_clock

SCHEMA = Path(STATE_DIRECTORY) / "schema" / "fleet.json"
IGNORED = f"{STATE_DIRECTORY}/"
NO_WORKTREES = (
    "notice: this is no git repository with a commit, so jobs work in the directory itself; "
    "see working_directory in nightherd.yaml"
)

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


@click.command("init", epilog="Example: nightherd init my-fleet --template pr-review")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--template",
    type=click.Choice(tuple(TEMPLATES)),
    metavar="NAME",
    help=f"Fleet to begin with: {', '.join(TEMPLATES)}.",
)
@click.option("--list-templates", is_flag=True, help="List the templates and write nothing.")
@click.option("--force", is_flag=True, help="Replace an existing fleet file.")
@json_option
@click.pass_obj
def init(
    invocation: Invocation,
    directory: Path | None,
    template: str | None,
    list_templates: bool,
    force: bool,
) -> None:
    """Create a fleet file. It goes into DIR (the current directory by default) and has one agent that runs at once.

    A template also has a README and the files its fleet needs. It replaces no file.
    """
    if list_templates:
        _list_templates(invocation.screen)
        return
    if template is not None and force:
        raise click.UsageError("--force is not for templates: they replace no file")
    target = invocation.cwd / directory if directory is not None else invocation.cwd
    texts = _texts_for(target, template) if template is not None else None
    try:
        written = _write(target, texts, force=force)
    except OSError as error:
        where = error.filename or target
        raise NightherdError(f"cannot write {where}: {error.strerror or error}") from error
    screen = invocation.screen
    if screen.is_json:
        files = [str(path) for path in written]
        data = {"directory": str(target), "files": files, "template": template}
        screen.document("init", data, system_clock().now())
        return
    for path in written:
        screen.show(str(path.relative_to(target)))
    screen.flush()
    enter = f"cd {directory} && " if directory is not None else ""
    first = TEMPLATES[template].first_command if template is not None else "nightherd run hello"
    screen.say(f"  try: {screen.err.bold(enter + first)}")
    if template is not None:
        screen.say("  README.md has the next commands")
        if texts != template_texts(template):
            screen.say(NO_WORKTREES)


def _texts_for(target: Path, template: str) -> dict[str, str]:
    """The files of a template, as the directory allows."""
    texts = template_texts(template)
    return texts if _can_have_worktrees(target) else without_worktrees(texts)


def _write(target: Path, texts: dict[str, str] | None, *, force: bool) -> list[Path]:
    """Write the fleet, from the files of a template or the first example; return the files, the fleet file first."""
    if texts is not None:
        refuse_existing(target, texts)
        fleet, *rest = write_fleet(target, texts[FLEET_FILE_NAMES[0]], is_new=True)
        return [fleet, *write_template(target, texts), *rest]
    present = fleet_file_in(target)
    if present is not None and not force:
        raise RefusedError(f"{present} already exists", hint="nightherd init --force")
    return write_fleet(target, FLEET, name=present.name if present else FLEET_FILE_NAMES[0])


def _can_have_worktrees(target: Path) -> bool:
    """Whether the directory, which need not be there yet, is in a git repository with a commit."""
    from nightherd.wiring.workspaces import is_worktree_source

    absolute = target.resolve()
    present = next(above for above in (absolute, *absolute.parents) if above.is_dir())
    return is_worktree_source(present)


def _list_templates(screen: Screen) -> None:
    if screen.is_json:
        data = [{"name": name, "description": one.description} for name, one in TEMPLATES.items()]
        screen.document("templates", data, system_clock().now())
        return
    width = max(map(len, TEMPLATES))
    for name, one in TEMPLATES.items():
        screen.show(f"{name:<{width}}  {one.description}")


def write_fleet(
    directory: Path, text: str, *, name: str = FLEET_FILE_NAMES[0], is_new: bool = False
) -> list[Path]:
    """Write the fleet file, its schema and, in a git work tree, the line that keeps state out of git.

    With `is_new` a fleet file that is there is never replaced.
    """
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
    with fleet.open("x" if is_new else "w", encoding="utf-8") as stream:
        stream.write(text)
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
