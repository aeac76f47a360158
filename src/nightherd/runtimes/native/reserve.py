"""Reserve: what the next turn may use at most is set aside before it begins, and bounds its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from nightherd.model.limits.limits import Shortfall
from nightherd.model.limits.spending import Prices
from nightherd.model.usage import Usage
from nightherd.ports import RuntimeRequest
from nightherd.runtimes.native.answer import Question
from nightherd.runtimes.native.price import (
    Cost,
    cost_of,
    declared_prices,
    prospect_of,
    usage_of,
    used_so_far,
)
from nightherd.runtimes.native.provider import least_output, members, settings_of


@dataclass(slots=True)
class Reserve:
    """What one run sets aside, turn by turn. An answer may be as long as what is left allows."""

    request: RuntimeRequest
    model: Model
    full: ModelSettings = field(init=False)
    """The settings of a request when there is enough of everything."""
    was_cut: bool = False
    """Whether the last answer ended where what was set aside for it did."""
    _declared: Prices = field(init=False)
    _max_output: int = field(init=False)
    _sent: RequestUsage = field(default_factory=RequestUsage)
    """What the next request is taken to hold."""

    def __post_init__(self) -> None:
        self.full = settings_of(self.request.agent, self.model)
        self._declared = declared_prices(self.request.prices, self.request.agent, self.model)
        self._max_output = self._full_output

    @property
    def _full_output(self) -> int:
        return self.full.get("max_tokens", 0)

    @property
    def cut_off_text(self) -> str:
        """Say at which length the last answer was cut off."""
        return f"the answer was cut off at {self._max_output:,} tokens: no more was left for it"

    @property
    def settings(self) -> ModelSettings:
        """The settings of the next request: `full`, with the size of answer that was set aside."""
        if self._max_output == self._full_output:
            return self.full
        return ModelSettings(**{**self.full, "max_tokens": self._max_output})

    async def take(
        self, messages: Sequence[ModelMessage], *, constants_bytes: int
    ) -> Shortfall | None:
        """Set aside what answering `messages` can use at most; why not, when too little is left.

        After an answer that was cut off, only one of full length may be asked for.
        """
        prospect = prospect_of(
            self.model, messages, constants_bytes=constants_bytes, declared=self._declared
        )
        self._sent = prospect.sent
        size, least = self._full_output, least_output(self.request.agent)
        while True:
            worst = prospect.worst_case(size)
            shortfall = await self.request.may_spend(worst.cost, worst.tokens)
            if shortfall is None:
                self._max_output, self.was_cut = size, False
                return None
            fitting = 0 if self.was_cut else prospect.fitting_output(shortfall, size)
            if fitting < least or fitting >= size:
                return shortfall
            size = fitting

    def cuts(self, answer: ModelResponse) -> bool:
        """Whether `answer` ended because no more was set aside for it."""
        return answer.finish_reason == "length" and self._max_output < self._full_output

    def paid(self, answer: ModelResponse) -> tuple[Cost, Usage]:
        """Return what `answer` cost and used."""
        cost = cost_of(answer, members(self.model)[0].model_name, self._declared)
        return cost, usage_of(answer, cost)

    def so_far(self, question: Question) -> Usage:
        """Return what an answer on its way has used."""
        return used_so_far(self.model, self._sent, question.usage, question.heard, self._declared)
