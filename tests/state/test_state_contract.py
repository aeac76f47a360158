"""Every store keeps the contract."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import anyio
import pytest

from nightherd.testing.contracts import (
    chat_outbox,
    chat_state,
    delivery,
    fleet,
    inbox,
    inbox_jobs,
    jobs,
    notification,
    order,
    push,
    run,
    run_rules,
    run_tree,
    run_waits,
    state,
    token,
    visit,
    work,
    workspace,
)
from nightherd.testing.contracts.chat_outbox import CHAT_OUTBOX_CHECKS
from nightherd.testing.contracts.chat_state import CHAT_STATE_CHECKS
from nightherd.testing.contracts.delivery import DELIVERY_CHECKS
from nightherd.testing.contracts.fleet import FLEET_CHECKS
from nightherd.testing.contracts.inbox import INBOX_CHECKS
from nightherd.testing.contracts.inbox_jobs import INBOX_JOBS_CHECKS
from nightherd.testing.contracts.jobs import JOBS_CHECKS
from nightherd.testing.contracts.notification import NOTIFICATION_CHECKS
from nightherd.testing.contracts.order import ORDER_CHECKS
from nightherd.testing.contracts.push import PUSH_CHECKS
from nightherd.testing.contracts.run import RUN_CHECKS
from nightherd.testing.contracts.run_rules import RUN_RULES_CHECKS
from nightherd.testing.contracts.run_tree import RUN_TREE_CHECKS
from nightherd.testing.contracts.run_waits import RUN_WAITS_CHECKS
from nightherd.testing.contracts.state import CHECKS, Check
from nightherd.testing.contracts.token import TOKEN_CHECKS
from nightherd.testing.contracts.visit import VISIT_CHECKS
from nightherd.testing.contracts.work import WORK_CHECKS
from nightherd.testing.contracts.workspace import WORKSPACE_CHECKS
from state.stores import STATES, StateFactory


@pytest.mark.parametrize(
    "check",
    [
        *CHECKS,
        *FLEET_CHECKS,
        *JOBS_CHECKS,
        *DELIVERY_CHECKS,
        *ORDER_CHECKS,
        *INBOX_CHECKS,
        *INBOX_JOBS_CHECKS,
        *NOTIFICATION_CHECKS,
        *TOKEN_CHECKS,
        *VISIT_CHECKS,
        *PUSH_CHECKS,
        *WORKSPACE_CHECKS,
        *RUN_CHECKS,
        *RUN_RULES_CHECKS,
        *RUN_WAITS_CHECKS,
        *RUN_TREE_CHECKS,
        *CHAT_STATE_CHECKS,
        *CHAT_OUTBOX_CHECKS,
        *WORK_CHECKS,
    ],
    ids=lambda check: check.__name__,
)
@pytest.mark.parametrize("factory", STATES.values(), ids=STATES.keys())
def test_store_keeps_the_contract(factory: StateFactory, check: Check, tmp_path: Path) -> None:
    async def main() -> None:
        async with factory(tmp_path) as state:
            await check(state)

    anyio.run(main)


@pytest.mark.parametrize(
    ("module", "checks"),
    [
        (state, CHECKS),
        (fleet, FLEET_CHECKS),
        (jobs, JOBS_CHECKS),
        (delivery, DELIVERY_CHECKS),
        (order, ORDER_CHECKS),
        (inbox, INBOX_CHECKS),
        (inbox_jobs, INBOX_JOBS_CHECKS),
        (notification, NOTIFICATION_CHECKS),
        (token, TOKEN_CHECKS),
        (visit, VISIT_CHECKS),
        (push, PUSH_CHECKS),
        (workspace, WORKSPACE_CHECKS),
        (run, RUN_CHECKS),
        (run_rules, RUN_RULES_CHECKS),
        (run_waits, RUN_WAITS_CHECKS),
        (run_tree, RUN_TREE_CHECKS),
        (chat_state, CHAT_STATE_CHECKS),
        (chat_outbox, CHAT_OUTBOX_CHECKS),
        (work, WORK_CHECKS),
    ],
)
def test_no_check_is_left_out(module: ModuleType, checks: tuple[Check, ...]) -> None:
    written = {name for name in vars(module) if name.startswith("check_")}

    assert {check.__name__ for check in checks} == written
