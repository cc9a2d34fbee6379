"""Tests that init containers which the fake kubelet cannot simulate block a test."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes import known_waits


def _pod(*containers: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"initContainers": list(containers)}}


def test_a_wait_in_another_form_blocks() -> None:
    with pytest.raises(Blocked, match="as wait does"):
        known_waits.require(
            [_pod({"name": "own"}, {"name": "wait", "args": ["--after=s-0-a"]})], template_names={"own"}
        )


@pytest.mark.parametrize("args", (["--podcliques=s-0-a:1"], ["-p", "s-0-a:1"], ["--podcliques=s-0-a"]))
def test_a_known_form_is_judged(args: list[str]) -> None:
    known_waits.require([_pod({"name": "other"}), _pod({"name": "wait", "args": args})], template_names=())


def test_pods_that_do_not_wait_are_judged() -> None:
    known_waits.require([_pod({"name": "own"}), {"spec": {}}], template_names={"own"})
