"""Makes `.venv` from `uv.lock`, with uv taken from PATH or put into `.tools/`. Standard library only.

Run by `scripts/bootstrap`, which has found a Python that is new enough and passes its name on. A stamp in
`.venv` says what it was made from; while that is still true nothing is done and nothing is fetched.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
ENVIRONMENT = ROOT / ".venv"
STAMP = ENVIRONMENT / ".made-from"


class BootstrapError(Exception):
    """The environment cannot be made; the message says what to do about it."""


def say(text: str) -> None:
    """Talk goes to stderr: a target's own output stays its own."""
    print(text, file=sys.stderr, flush=True)


def fingerprint() -> str:
    """What the environment depends on: both project files, and the place its scripts point to."""
    digest = hashlib.sha256(str(ROOT).encode())
    for name in ("pyproject.toml", "uv.lock"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def is_ready() -> bool:
    """Whether `.venv` was completely made from what the project files say now."""
    try:
        return STAMP.read_text() == fingerprint() and (ENVIRONMENT / "bin/python").exists()
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """One bootstrap at a time; the lock goes with the process, so a killed one leaves nothing behind."""
    TOOLS.mkdir(exist_ok=True)
    with (TOOLS / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another bootstrap to finish")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def oldest_uv() -> tuple[int, ...]:
    """The oldest uv the project accepts, as pyproject.toml says."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        required: str = tomllib.load(file)["tool"]["uv"]["required-version"]
    return tuple(int(part) for part in required.removeprefix(">=").split("."))


def is_new_enough(uv: str) -> bool:
    """Whether `uv` runs and is not older than the project accepts."""
    try:
        answer = subprocess.run(
            [uv, "--version"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return False
    version = re.search(r"\d+(?:\.\d+)+", answer)
    return version is not None and tuple(map(int, version[0].split("."))) >= oldest_uv()


def find_uv() -> str | None:
    """A uv that is already here: on PATH, or ours from before."""
    candidates = (shutil.which("uv"), TOOLS / "venv/bin/uv", TOOLS / "site/bin/uv")
    return next((str(uv) for uv in candidates if uv is not None and is_new_enough(str(uv))), None)


def succeeds(*command: str) -> bool:
    """Whether the command ends with 0; what it says is shown only when it does not."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        say("\n".join(f"  | {line}" for line in done.stdout.splitlines()[-8:]))
    return done.returncode == 0


def install_uv_in_venv(python: str, requirement: str) -> bool:
    """uv in a small environment of its own; False where Debian has taken ensurepip out of Python."""
    venv = str(TOOLS / "venv")
    return succeeds(python, "-m", "venv", "--clear", venv) and succeeds(
        f"{venv}/bin/python", "-m", "pip", "install", "--quiet", requirement
    )


def install_uv_in_folder(python: str, requirement: str) -> bool:
    """uv by the system's own pip into a folder of ours, which leaves the system's packages alone."""
    return succeeds(
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--upgrade",
        "--target",
        str(TOOLS / "site"),
        requirement,
    )


def install_uv(python: str) -> str:
    """uv from PyPI into `.tools/`, by whichever way this Python offers."""
    requirement = "uv>=" + ".".join(map(str, oldest_uv()))
    say(f"installing uv into {TOOLS.name}/")
    installed = install_uv_in_venv(python, requirement) or install_uv_in_folder(python, requirement)
    if not installed and (TOOLS / "venv/bin/pip").exists():
        raise BootstrapError(
            "uv could not be installed: pip's own words are above.\n"
            "PyPI cannot be reached, it seems: check the network and any proxy, then run the same command again.\n"
            "A uv that is on PATH is used instead: https://docs.astral.sh/uv/"
        )
    installed = installed or (
        subprocess.call([ROOT / "scripts/packages", "python3-venv"]) == 0
        and install_uv_in_venv(python, requirement)
    )
    uv = find_uv() if installed else None
    if uv is None:
        raise BootstrapError(
            f"uv could not be installed with {python}. One of these mends it; then run the same command again:\n"
            "  Debian, Ubuntu:  sudo apt-get install -y python3-venv\n"
            "  with pip:        python3 -m pip install --user uv   (and ~/.local/bin on PATH)\n"
            "  elsewhere:       install uv so that it is on PATH: https://docs.astral.sh/uv/\n"
            "Without a way to PyPI none of them can work: check the network and any proxy first."
        )
    return uv


def uv_environment() -> dict[str, str]:
    """What uv is told: use the Python at hand, never fetch one, and cache where writing is possible."""
    environment = {
        **os.environ,
        "UV_PYTHON": sys.executable,
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_PROJECT_ENVIRONMENT": str(ENVIRONMENT),
    }
    # An activated environment of the caller's is none of our business.
    environment.pop("VIRTUAL_ENV", None)
    home = os.environ.get("HOME", "")
    cache_is_set = "UV_CACHE_DIR" in os.environ or "XDG_CACHE_HOME" in os.environ
    if not cache_is_set and not (home and os.access(home, os.W_OK)):
        environment["UV_CACHE_DIR"] = str(TOOLS / "uv-cache")
    return environment


def synchronise(uv: str) -> None:
    """`.venv` exactly as the lock file says, by the first of these ways that works.

    uv brings its own list of certificate authorities; behind a proxy that signs for itself only the system's
    list knows it. When the network is gone, what uv has in its cache may be enough.
    """
    STAMP.unlink(missing_ok=True)
    command = [uv, "sync", "--locked", "--project", str(ROOT)]
    if not sys.stderr.isatty():
        # Its progress is for someone who watches; in a log it is a page of package names.
        command.append("--quiet")
    environment = uv_environment()
    system = {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}  # its name now, and before
    ways: tuple[tuple[str, dict[str, str]], ...] = (
        ("making .venv from uv.lock", {}),
        ("once more, with the system's certificates", system),
        ("once more, from uv's cache alone", {"UV_OFFLINE": "1"}),
    )
    for text, more in ways:
        say(text)
        if subprocess.call(command, env={**environment, **more}, cwd=ROOT) == 0:
            break
    else:
        raise BootstrapError("uv could not make .venv; its own words are above")
    fresh = STAMP.with_name(f"{STAMP.name}.{os.getpid()}")
    fresh.write_text(fingerprint())
    fresh.replace(STAMP)


def main() -> int:
    """0 once `.venv` is ready; 1 with the reason on stderr otherwise."""
    python = sys.argv[1]
    if is_ready():
        return 0
    try:
        with alone():
            if not is_ready():
                synchronise(find_uv() or install_uv(python))
    except BootstrapError as error:
        say(str(error))
        return 1
    except OSError as error:
        say(f"the environment is made in the checkout, and it cannot be written: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
