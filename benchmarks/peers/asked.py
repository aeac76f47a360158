"""Asking a peer: another system, in an environment of its own, measured by a script of this folder."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOLS = HERE.parent.parent / ".tools"


def environment(*requirements: str, module: str) -> Path | None:
    """A Python that has the peer, in an environment of its own; None, said out loud, when none can be had."""
    python = TOOLS / f"bench-{requirements[0].replace('==', '-')}" / "bin" / "python"
    uv = shutil.which("uv") or str(TOOLS / "venv" / "bin" / "uv")
    try:
        if not python.exists():
            subprocess.run([uv, "venv", "-q", python.parent.parent], check=True)
            command = [uv, "pip", "install", "-q", "--python", str(python), *requirements]
            subprocess.run(command, check=True, timeout=300)
        subprocess.run([python, "-c", f"import {module}"], check=True, capture_output=True)
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(python.parent.parent, ignore_errors=True)
        print(f"!! {requirements[0]} could not be installed: nothing is compared with it ({error})")
        return None
    return python


def ask(python: Path, script: str, *arguments: object) -> list[float]:
    """The numbers that the script ends with."""
    command = [str(python), str(HERE / script), *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [float(word) for word in done.stdout.splitlines()[-1].split()]
