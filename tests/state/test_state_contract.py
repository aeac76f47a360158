"""Every store keeps the contract."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import anyio
import pytest

from nightherd.testing import (
    delivery_contract,
    fleet_contract,
    inbox_contract,
    inbox_jobs_contract,
    jobs_contract,
    notification_contract,
    order_contract,
    push_contract,
    run_contract,
    run_rules_contract,
    run_tree_contract,
    run_waits_contract,
    state_contract,
    token_contract,
    visit_contract,
    workspace_contract,
)
from nightherd.testing.delivery_contract import DELIVERY_CHECKS
from nightherd.testing.fleet_contract import FLEET_CHECKS
from nightherd.testing.inbox_contract import INBOX_CHECKS
from nightherd.testing.inbox_jobs_contract import INBOX_JOBS_CHECKS
from nightherd.testing.jobs_contract import JOBS_CHECKS
from nightherd.testing.notification_contract import NOTIFICATION_CHECKS
from nightherd.testing.order_contract import ORDER_CHECKS
from nightherd.testing.push_contract import PUSH_CHECKS
from nightherd.testing.run_contract import RUN_CHECKS
from nightherd.testing.run_rules_contract import RUN_RULES_CHECKS
from nightherd.testing.run_tree_contract import RUN_TREE_CHECKS
from nightherd.testing.run_waits_contract import RUN_WAITS_CHECKS
from nightherd.testing.state_contract import CHECKS, Check
from nightherd.testing.token_contract import TOKEN_CHECKS
from nightherd.testing.visit_contract import VISIT_CHECKS
from nightherd.testing.workspace_contract import WORKSPACE_CHECKS
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
        (state_contract, CHECKS),
        (fleet_contract, FLEET_CHECKS),
        (jobs_contract, JOBS_CHECKS),
        (delivery_contract, DELIVERY_CHECKS),
        (order_contract, ORDER_CHECKS),
        (inbox_contract, INBOX_CHECKS),
        (inbox_jobs_contract, INBOX_JOBS_CHECKS),
        (notification_contract, NOTIFICATION_CHECKS),
        (token_contract, TOKEN_CHECKS),
        (visit_contract, VISIT_CHECKS),
        (push_contract, PUSH_CHECKS),
        (workspace_contract, WORKSPACE_CHECKS),
        (run_contract, RUN_CHECKS),
        (run_rules_contract, RUN_RULES_CHECKS),
        (run_waits_contract, RUN_WAITS_CHECKS),
        (run_tree_contract, RUN_TREE_CHECKS),
    ],
)
def test_no_check_is_left_out(module: ModuleType, checks: tuple[Check, ...]) -> None:
    written = {name for name in vars(module) if name.startswith("check_")}

    assert {check.__name__ for check in checks} == written
