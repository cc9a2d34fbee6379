"""Tests that no attack forges a pass, hides a failure, or makes the harness exceed its memory limit or its time limit.

Each test is a whole run on a cluster, so `make attacks` runs this file and `make test` does not.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.attack import Attack, attacks, run
from tests.suite.remains import remains

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

MEMORY = 500
"""MiB that a process of the harness may use."""


@pytest.mark.parametrize("attack", attacks(), ids=lambda attack: attack.name)
def test_attack(attack: Attack, tmp_path: Path) -> None:
    attacked = run(attack, tmp_path)
    terminal = attacked.terminal
    assert attacked.exit == attack.exit, terminal
    report = attacked.report
    assert (report["verdict"]["result"] if report else "") == attack.verdict, terminal
    outcomes = {r["id"]: r["outcome"] for r in report["verdict"]["requirements"]} if report else {}
    assert {id: outcomes.get(id) for id in attack.outcomes} == attack.outcomes, terminal
    assert [text for text in attack.shows if text not in terminal] == [], terminal
    assert [text for text in attack.once if terminal.count(text) != 1] == [], terminal
    assert {text: files for text in attack.hides if (files := attacked.contains(text))} == {}
    assert "Traceback" not in terminal
    assert attacked.memory < MEMORY
    assert remains(tmp_path / "state") == []
