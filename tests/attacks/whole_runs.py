"""Tests that no attack forges a pass, hides a failure, or makes the harness exceed its memory limit or its time limit.

Each test is a whole run on a cluster, so `make attacks` runs this file and `make test` does not.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.attack import Attack, load_attacks, run
from tests.suite.remains import remains

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

MAX_MEMORY = 500
"""Maximum memory of a process of the harness in MiB."""


LONGEST_FIRST = sorted(load_attacks(), key=lambda attack: -attack.seconds)


@pytest.mark.parametrize("attack", LONGEST_FIRST, ids=lambda attack: attack.name)
def test_attack(attack: Attack, tmp_path: Path) -> None:
    result = run(attack, tmp_path)
    output = result.output
    assert result.exit_code == attack.exit, output
    report = result.report
    assert (report["verdict"]["result"] if report else "") == attack.verdict, output
    outcomes = {r["id"]: r["outcome"] for r in report["verdict"]["requirements"]} if report else {}
    assert {id: outcomes.get(id) for id in attack.outcomes} == attack.outcomes, output
    assert [text for text in attack.shows if text not in output] == [], output
    assert [text for text in attack.once if output.count(text) != 1] == [], output
    assert {text: files for text in attack.hides if (files := result.files_containing(text))} == {}
    assert "Traceback" not in output
    assert result.peak_memory < MAX_MEMORY
    assert remains(tmp_path / "state") == []
