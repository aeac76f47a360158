"""Every store keeps the contract."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from nightherd.testing import state_contract
from nightherd.testing.state_contract import CHECKS, Check
from state.stores import STATES, StateFactory


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("factory", STATES.values(), ids=STATES.keys())
def test_store_keeps_the_contract(factory: StateFactory, check: Check, tmp_path: Path) -> None:
    async def main() -> None:
        async with factory(tmp_path) as state:
            await check(state)

    anyio.run(main)


def test_no_check_is_left_out() -> None:
    written = {name for name in vars(state_contract) if name.startswith("check_")}

    assert {check.__name__ for check in CHECKS} == written
