"""Scenes that are recorded by hand instead of run, so that conformance tests can judge them without a cluster."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from conformance.grove import labels
from conformance.suite.outcomes.checks import Blocked, CheckFailed, Checks
from conformance.suite.outcomes.ledger import Check
from conformance.suite.registry.requirement import MARK
from conformance.suite.scenes.recorded import Recorded
from conformance.suite.scenes.scene import SceneRun, Step
from tests.history.story import Story


class Recording:
    """A scene that is given by the records of its objects and by its steps."""

    def __init__(self, **scene: Any) -> None:
        self.story, self.scene = Story(), SimpleNamespace(**scene)
        self._steps: dict[str, Step] = {}
        self._cliques: set[str] = set()

    def pod(self, clique: str, name: str, tag: str = "1", gang: str = "g", node: str = "n") -> str:
        """Record a pod, and its clique if the clique is new; return the pod's uid."""
        set_name = clique.partition("-")[0]
        if clique not in self._cliques:
            self._cliques.add(clique)
            self.story.record("podcliques", clique, {"metadata": {"labels": {labels.PART_OF: set_name}}})
        spec = {"containers": [{"name": "main", "image": f"registry.example/f:{tag}"}], "nodeName": node}
        tags = {labels.PART_OF: set_name, labels.CLIQUE: clique, labels.GANG: gang}
        return self.story.record("pods", name, {"metadata": {"labels": tags}, "spec": spec}).uid

    def at(self, *steps: str, unmet: str = "") -> None:
        """Mark steps as reached now, or as not reached if `unmet` says why."""
        self.story.record("configmaps", f"step-{len(self._steps)}", {})
        for step in steps:
            self._steps[step] = Step(step, self.story.history.mark(), None, self.story.at, unmet)

    def outcome(self, test: Callable[..., None]) -> str:
        """Let a test judge the scene; return "passed", "failed" or "blocked"."""
        [mark] = [mark for mark in test.pytestmark if mark.name == MARK]  # type: ignore[attr-defined]
        checks: list[Check] = []
        scene: Any = self.scene
        scene_run = SceneRun("scene", scene, self.story.history, self._steps, {})
        run: Any = Recorded(
            scene_run, scene, Checks(test.__name__, list(mark.args), checks.append), mark.kwargs["reaches"]
        )
        try:
            test(run)
            run.judge_reaches()
        except CheckFailed:
            """The failure is among the checks."""
        except Blocked:
            return "blocked"
        return "failed" if any(check.outcome == "failed" for check in checks) else "passed"
