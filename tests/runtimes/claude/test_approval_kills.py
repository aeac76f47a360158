"""`claude`, its worker or both are killed between asking and running: an approved call runs once, or nobody knows."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import product
from pathlib import Path

import anyio
import msgspec
import pytest

from components import Components
from nightherd.runtimes.claude.deferred import NOT_RUN
from nightherd.testing.messages_api import Asked, MessagesApi
from nightherd.testing.messages_script import Answer, Call, Say
from runtimes.claude.approval_places import Order, Victim
from runtimes.claude.claude_stage import make_stage
from runtimes.claude.test_claude_approvals import Waiting
from runtimes.stage import until
from soak import often

PUSH = Call("Bash", {"command": "echo pushed >> ran; [ ! -e ../fatal ] || . ../fatal"})
HANG = "mv ../fatal ../done; kill -9 {victims}; tail -f /dev/null"
VICTIMS = {
    Victim.CLAUDE: "$PPID",
    Victim.WORKER: "$(cat ../worker.pid)",
    Victim.BOTH: "$(cat ../worker.pid) $PPID",
}
MOST_ROUNDS = 6
TESTS = Path(__file__).parents[2]

ASKING = [
    Order(place=place, victim=victim)
    for place, victim in product(("asked", "decided", "answered"), Victim)
]
ANSWERED = [msgspec.structs.replace(order, is_resumed=True) for order in ASKING]
LATER = [
    Order(place="answered", victim=victim, is_resumed=is_resumed, after_s=after_s)
    for victim, is_resumed, after_s in product(Victim, (False, True), (0.02, 0.05, 0.1, 0.2, 0.4))
]
IN_THE_TOOL = [Order(place="tool", victim=victim, is_resumed=True) for victim in Victim]
SETTLING = [Order(place="settling", victim=Victim.WORKER)]
EVERYTHING = [
    (order, runtime)
    for order, runtime in product(
        [*ASKING, *ANSWERED, *LATER, *IN_THE_TOOL, *SETTLING], ("cli", "sdk")
    )
]
USUAL = [
    (Order(place="decided", victim=Victim.BOTH), "cli"),
    (Order(place="decided", victim=Victim.CLAUDE), "sdk"),
    (Order(place="settling", victim=Victim.WORKER), "sdk"),
    (Order(place="asked", victim=Victim.WORKER, is_resumed=True), "cli"),
    (Order(place="decided", victim=Victim.CLAUDE, is_resumed=True), "cli"),
    (Order(place="decided", victim=Victim.BOTH, is_resumed=True), "sdk"),
    (Order(place="tool", victim=Victim.CLAUDE, is_resumed=True), "sdk"),
    (Order(place="tool", victim=Victim.BOTH, is_resumed=True), "cli"),
]
TRIALS = USUAL if often(1, soak=2) == 1 else EVERYTHING


class PushingModel(MessagesApi):
    """A model that pushes once, and again only when it is told that the call has not run."""

    def __init__(self) -> None:
        super().__init__(Say(text="All done."))

    def take(self, asked: Asked) -> tuple[Answer, str]:
        """The call, or the end."""
        done, name = super().take(asked)
        messages = asked.body["messages"]
        last = json.dumps(messages[-1])
        if "echo pushed" not in json.dumps(messages) or json.dumps(NOT_RUN)[1:-1] in last:
            return Say(text="I push.", calls=(PUSH,)), name
        return done, name


def carry_out(herd: Waiting, order: Order, *words: str) -> None:
    """Run the command; it is killed where the order says, or somebody else is."""
    if order.place == "tool":
        (herd.root / "fatal").write_text(HANG.format(victims=VICTIMS[order.victim]))
    subprocess.run(
        [sys.executable, "-m", "runtimes.claude.approval_trial", _json(order), *words],
        cwd=herd.root,
        env={**herd.environment, "PYTHONPATH": str(TESTS)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    if order.victim is not Victim.CLAUDE:
        anyio.run(until, lambda: herd.stage.processes() == {})


def _json(order: Order) -> str:
    return msgspec.json.encode(order).decode()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("order", "runtime"),
    TRIALS,
    ids=lambda one: (
        one
        if isinstance(one, str)
        else f"{'resumed' if one.is_resumed else 'first'}-{one.place}-{one.victim}-{one.after_s}"
    ),
)
def test_approved_call_runs_once_or_its_outcome_is_unknown(
    tmp_path: Path, components: Components, slot: None, order: Order, runtime: str
) -> None:
    stage = make_stage(tmp_path, components.claude(), runtime)
    with PushingModel() as api:
        herd = Waiting(stage, api)
        if order.is_resumed:
            herd.run()
        else:
            carry_out(herd, order, "run", "helper", "-p", "make it")
        is_armed, job = order.is_resumed, herd.go_on()
        for _ in range(MOST_ROUNDS):
            if job["status"] not in ("suspended", "pending", "running"):
                break
            done = herd.nightherd("inbox", "approve", "@last")
            assert done.returncode == 0, done.stderr
            if is_armed:
                is_armed = False
                carry_out(herd, order, "worker", "--until-idle")
            job = herd.go_on()

    assert (job["status"], job["summary"]) == ("completed", "All done."), job
    ran = herd.ran.count("pushed")
    told = json.dumps(api.asked[-1].body["messages"])
    assert ran == 1 or (ran == 0 and "nterrupted" in told), told[-2000:]
    released = [line for line in herd.lines("review") if line["extra"]["status"] == "approved"]
    # A call that is cut off before anybody is asked is reported like every other that is cut off.
    assert len(released) == 1 or (not released and order.place == "asked")
    calls = {line["tool_use_id"] for line in herd.lines("tool_use")}
    assert calls == {line["tool_use_id"] for line in herd.lines("tool_result")}
    assert stage.processes() == {}
