"""Agents are not given what their bots log in with."""

from msgspec.structs import replace

from engine.bench import Bench
from nightherd.model.chat.platform import Platform, bot_id
from nightherd.model.chat.settings import BotSettings


def test_agents_are_not_given_the_tokens_of_bots() -> None:
    bot = BotSettings(
        bot=bot_id(Platform.SLACK, "coder"),
        platform=Platform.SLACK,
        agent="coder",
        token_env="TOKEN_OF_SLACK",
    )
    bench = Bench(environment={"TOKEN_OF_SLACK": "xoxb-123456789", "PATH": "/bin"})
    bench.context = replace(bench.context, agents={"coder": replace(bench.agent, bots=(bot,))})

    bench.run()

    (request,) = bench.runtime.requests
    assert request.environment == {"PATH": "/bin"}
