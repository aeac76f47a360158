"""Every kind of row, for those who need them all."""

from __future__ import annotations

from collections.abc import Mapping

from nightherd.model.agent_state import AgentState
from nightherd.model.checkpoint import Checkpoint
from nightherd.model.delivery import Delivery
from nightherd.model.execution import Execution
from nightherd.model.job import Job, JobTexts
from nightherd.model.login_limit import LoginLimit
from nightherd.model.schedule import ScheduleOverride, ScheduleState, Slot
from nightherd.model.session import Session
from nightherd.model.spending import Reservation, Spending
from nightherd.model.worker import Worker
from nightherd.state.tables import NAMES

KINDS = (
    Session,
    Job,
    JobTexts,
    Execution,
    Checkpoint,
    Worker,
    AgentState,
    ScheduleState,
    ScheduleOverride,
    Slot,
    Delivery,
    Spending,
    Reservation,
    LoginLimit,
)

TABLES: Mapping[type, str] = {kind: NAMES[kind.__name__] for kind in KINDS}
"""The table of every kind of row, in the order in which rows may refer to each other."""
