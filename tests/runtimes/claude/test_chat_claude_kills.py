"""`claude`, its worker or both are killed while it is told something: it is told once, and one turn answers."""

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
from crash.chat_trials import FilePlatform
from engine.chat.bot_bench import LiveBot
from nightherd.model.journal.event import AssistantEvent, messages_joined
from nightherd.testing.local_chat import LocalPlatform
from nightherd.testing.messages_api import Asked, MessagesApi
from nightherd.testing.messages_script import Answer, Call, Say
from nightherd.wiring.running import open_worker
from runtimes.claude.approval_places import Order, Victim
from runtimes.claude.chat_trial import BEGAN, MESSAGES, fleet_of
from runtimes.claude.claude_stage import ClaudeStage, make_stage
from runtimes.claude.test_chat_claude import FLEET
from runtimes.stage import until
from soak import often

WORK = Call("Bash", {"command": f"touch {BEGAN}; sleep 0.2"})
ANSWER = "all of them"
PLACES = ("recorded", "joined", "told", "read")
EVERYTHING = list(product(PLACES, Victim, ("cli", "sdk")))
USUAL = [
    ("recorded", Victim.WORKER, "cli"),
    ("joined", Victim.BOTH, "sdk"),
    ("told", Victim.BOTH, "cli"),
    ("told", Victim.CLAUDE, "sdk"),
    ("read", Victim.WORKER, "sdk"),
    ("read", Victim.CLAUDE, "cli"),
]
TRIALS = USUAL if often(1, soak=2) == 1 else EVERYTHING
TESTS = Path(__file__).parents[2]


class CountingModel(MessagesApi):
    """A model that works until it has heard of the black ones."""

    def __init__(self) -> None:
        super().__init__(Say(text=ANSWER))

    def take(self, asked: Asked) -> tuple[Answer, str]:
        """Another call, or the end."""
        done, name = super().take(asked)
        has_heard = MESSAGES[1] in json.dumps(asked.body["messages"])
        return (done if has_heard else Say(calls=(WORK,))), name


def carry_out(stage: ClaudeStage, api: MessagesApi, order: Order) -> int:
    done = subprocess.run(
        [sys.executable, "-m", "runtimes.claude.chat_trial", msgspec.json.encode(order).decode()],
        cwd=stage.root,
        env={**stage.environment(api), "PYTHONPATH": str(TESTS)},
        timeout=100,
        check=False,
    )
    anyio.run(until, lambda: stage.processes() == {})
    return done.returncode


def copies(asked: Asked) -> int:
    return sum(one.count(MESSAGES[1]) for one in asked.texts)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("place", "victim", "runtime"), TRIALS)
def test_what_is_said_during_a_turn_is_told_once_whoever_is_killed(
    place: str, victim: Victim, runtime: str, tmp_path: Path, components: Components, slot: None
) -> None:
    stage = make_stage(tmp_path, components.claude(), runtime)
    fleet = FLEET.format(runtime=runtime, work=stage.work)
    (stage.root / "nightherd.yaml").write_text(fleet)

    async def check() -> None:
        live = LiveBot(stage.root, fleet_of(stage.root), LocalPlatform())
        async with open_worker(live.state_dir, live.fleet, {}) as context:
            live.context = context
            (turn,) = live.turns()
            said = context.reader.chat_messages_of_job(turn.job_id)
            journal = list(context.journals.read(turn.job_id))
            joined = [ids for event in journal if (ids := messages_joined(event))]
            assert joined == [[said[1].id]]
            # Without its worker Claude may still have answered: that is on record, and it is asked again.
            texts = [one.content for one in journal if isinstance(one, AssistantEvent)]
            posts = [one["text"] for one in FilePlatform(stage.root).posts()]
            assert posts.count(ANSWER) == texts.count(ANSWER) > 0
            assert posts[-1] == ANSWER

    with CountingModel() as api:
        ended = carry_out(stage, api, Order(place=place, victim=victim))
        if victim is Victim.CLAUDE:
            assert ended == 0
        else:
            assert ended < 0
            assert carry_out(stage, api, Order(place="nowhere", victim=victim)) == 0
        anyio.run(check)

    heard = [copies(asked) for asked in api.asked]
    assert heard == sorted(heard)
    assert heard[-1] == 1
