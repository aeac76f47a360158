"""The instructions that a keeper gets when it starts: one header line, then fields with a NUL between them.

Arguments and environments are bytes that hold no NUL, so they pass unchanged; JSON would double the time a
keeper takes to start. After the instructions the same pipe carries orders, a line each: `beat DEADLINE`,
`stop GRACE`, and `release` for an input that it holds open. The keeper answers with lines on another: `started PID`, `refused ERRNO WHAT`, and
`ended RETURNCODE WHY KILLED LEFT`, which comes a second time when something outlived the command.
Times are seconds; deadlines are on the monotonic clock, which is one for all processes of a machine.
"""

from __future__ import annotations

GREETING = b"nightherd-keeper-1"
FOREVER = float("inf")


class Instructions:
    """The command, where it runs, and what is to end it."""

    __slots__ = (
        "argv",
        "cwd",
        "deadline",
        "environment",
        "grace_s",
        "margin_s",
        "mark",
        "may_outlive",
        "scratch",
    )

    def __init__(  # noqa: PLR0913 one for each slot
        self,
        *,
        argv: list[bytes],
        cwd: bytes,
        environment: dict[bytes, bytes],
        mark: bytes,
        grace_s: float,
        deadline: float = FOREVER,
        margin_s: float = 0.0,
        may_outlive: bool = False,
        scratch: bytes = b"",
    ) -> None:
        self.argv = argv
        self.cwd = cwd
        self.environment = environment
        self.mark = mark
        self.grace_s = grace_s
        self.deadline = deadline
        self.margin_s = margin_s
        self.may_outlive = may_outlive
        self.scratch = scratch
        """A directory of files that only the command needs: removed with it; empty for none."""


def encode(instructions: Instructions) -> bytes:
    """The bytes that `decode` understands; `ValueError` when the command could not be started anyway."""
    if not instructions.argv:
        raise ValueError("there is no command")
    if any(not name or b"=" in name for name in instructions.environment):
        raise ValueError("illegal environment variable name")
    variables = [name + b"=" + value for name, value in instructions.environment.items()]
    fields = [
        instructions.cwd,
        instructions.mark,
        instructions.scratch,
        *instructions.argv,
        *variables,
    ]
    if any(b"\0" in field for field in fields):
        raise ValueError("embedded null byte")
    body = b"\0".join(fields)
    numbers = (instructions.grace_s, instructions.deadline, instructions.margin_s)
    counts = (int(instructions.may_outlive), len(instructions.argv), len(body))
    header = b" ".join([GREETING, *(repr(number).encode() for number in (*numbers, *counts))])
    return header + b"\n" + body


def decode(data: bytes) -> tuple[Instructions, bytes] | None:
    """The instructions and what follows them; None while they are not complete."""
    header, newline, rest = data.partition(b"\n")
    if not newline:
        return None
    greeting, grace, deadline, margin, outlive, arguments, size = header.split()
    if greeting != GREETING:
        raise ValueError("these are not instructions for this keeper")
    if len(rest) < int(size):
        return None
    cwd, mark, scratch, *fields = rest[: int(size)].split(b"\0")
    pairs = [field.partition(b"=") for field in fields[int(arguments) :]]
    instructions = Instructions(
        argv=fields[: int(arguments)],
        cwd=cwd,
        environment={name: value for name, _, value in pairs},
        mark=mark,
        grace_s=float(grace),
        deadline=float(deadline),
        margin_s=float(margin),
        may_outlive=outlive == b"1",
        scratch=scratch,
    )
    return instructions, rest[int(size) :]
