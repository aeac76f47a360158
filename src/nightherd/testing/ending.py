"""Ending: a probe at which the world does end, for tests of what is left then."""

from __future__ import annotations

import signal
import threading


class Ending:
    """A probe that ends this process, or stops it, when it comes to a point for the n-th time.

    Without a `point` every point counts: the n-th one passed, whatever its name.
    """

    def __init__(
        self, point: str | None = None, *, nth: int = 1, ending: int = signal.SIGKILL
    ) -> None:
        self._point, self._left, self._ending = point, nth, ending
        self._turn = threading.Lock()

    def __call__(self, point: str, /) -> None:
        if self._point is not None and point != self._point:
            return
        with self._turn:
            self._left -= 1
            is_now = self._left == 0
        if is_now:
            # To this thread, so that it does not run on until another has taken the signal.
            signal.pthread_kill(threading.get_ident(), self._ending)
