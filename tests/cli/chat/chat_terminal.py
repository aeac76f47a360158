"""`nightherd chat` in a terminal of its own: what is typed, and what a person sees."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 90.0
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PROMPT = "> "
OWN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)
"""Becomes the command, as the process that Ctrl-C reaches."""

FLEET = """\
agents:
  - name: echo
    runtime: scripted
    script:
      - repeat: 20
        steps: [{say: "You said: ${prompt}"}, {end: true}]
  - name: slow
    runtime: scripted
    script:
      - repeat: 20
        steps:
          - {say: "One two three four five six seven eight nine ten.", over: 4s}
          - {end: true}
  - name: sender
    runtime: scripted
    permission_mode: bypassPermissions
    script:
      - tool: Write
        input: {file_path: count.txt, content: "12 cows"}
      - tool: mcp__nightherd__send_file
        input: {path: count.txt, message: The count.}
      - say: Sent.
  - name: pusher
    runtime: scripted
    permission_mode: bypassPermissions
    approvals: [{tool: Bash}]
    script:
      - tool: Bash
        input: {command: echo pushed >> pushed.txt}
      - say: Pushed.
  - name: failing
    runtime: scripted
    script:
      - fail: {code: bad_luck, message: No luck today.}
"""


class ChatTerminal:
    """A terminal with the command in it."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWN_TERMINAL, "-m", "nightherd", "chat", *arguments],
            cwd=directory,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"},
            start_new_session=True,
        )
        os.close(theirs)
        self.screen = ""
        """Everything that was shown, without colours."""
        self._read_to = 0

    def type(self, text: str) -> None:
        """Press these keys."""
        os.write(self._ours, text.encode())

    def send(self, line: str) -> None:
        """Type a line."""
        self.type(f"{line}\n")

    def wait_for(self, text: str) -> str:
        """Wait until this is shown, after what was waited for before; everything up to it."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.screen[self._read_to :]:
            assert time.monotonic() < deadline, f"{text!r} was not shown:\n{self.screen}"
            self._read()
        begin = self._read_to
        self._read_to = self.screen.index(text, begin) + len(text)
        return self.screen[begin : self._read_to]

    def wait_for_prompt(self) -> str:
        """Wait until something can be typed; what was shown before."""
        return self.wait_for(f"\n{PROMPT}")

    def wait_for_end(self) -> int:
        """Wait until the command has ended; its exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it did not end:\n{self.screen}"
            self._read()
        while self._read():
            pass
        return self.process.returncode

    def _read(self) -> bool:
        if not select.select([self._ours], [], [], 0.05)[0]:
            return False
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # nobody has the other end any more
            return False
        text = ESCAPES.sub("", data.decode(errors="replace"))
        self.screen += text.replace("\r\n", "\n").replace("\r", "\n")
        return bool(data)

    def close(self) -> None:
        """End the command if it still runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self._ours)


@contextmanager
def chat_terminal(directory: Path, *arguments: str) -> Iterator[ChatTerminal]:
    """A terminal in which the command has begun."""
    terminal = ChatTerminal(directory, *arguments)
    try:
        yield terminal
    finally:
        terminal.close()
