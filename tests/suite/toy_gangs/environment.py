"""The environment of a scene on the in-memory cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from conformance.grove.fields import name
from conformance.grove.kinds import SECOND_SCHEDULER
from conformance.grove.labels import BY_HAND
from conformance.grove.scheduling.manifests import Testbed
from conformance.history.query import History
from conformance.history.view import View
from conformance.suite.scenes.scene import SceneEnded, Step
from toy_gangs.scheduler import Scheduler
from toy_gangs.world import NAMESPACE, Object, World

MAIN_SCHEDULER = "default-scheduler"
VERSIONS = {"podgroups": "v1beta1", "compositepodgroups": "v1alpha3"}


class Environment:
    """The environment of a scene, like `SceneEnvironment`. A wait runs controllers and schedulers until its condition
    holds, or nothing changes any more."""

    namespace = NAMESPACE
    implementation = SimpleNamespace(scheduler_name=MAIN_SCHEDULER, is_kube_scheduler=True)

    def __init__(self, fault: str = "") -> None:
        """`fault` names the Workload API guarantee that the toy scheduler violates; empty for none."""
        self.world = World(fault)
        self._schedulers = [
            Scheduler(self.world, scheduler_name) for scheduler_name in (MAIN_SCHEDULER, SECOND_SCHEDULER)
        ]
        self.history = History(self.world.log, NAMESPACE)
        self.steps: dict[str, Step] = {}
        self.dry_run = SimpleNamespace(create=lambda obj: obj, ask=self.world.answer)

    def served(self, kind: str) -> str:
        resource, _, group = kind.partition(".")
        return f"{group}/{VERSIONS[resource]}"

    def testbed(self, scenario: str) -> Testbed:
        selector = {BY_HAND: scenario}
        return Testbed(NAMESPACE, f"pool-{scenario}", MAIN_SCHEDULER, prefix=scenario, selector=selector)

    def create_nodes(self, manifests: Sequence[Object]) -> list[str]:
        return [name(self.world.create(node)) for node in manifests]

    def create(self, obj: Object) -> Object:
        assert self.world.answer(obj).accepted, obj
        return self.world.create(obj)

    def create_all(self, objects: Sequence[Object]) -> None:
        for obj in objects:
            self.create(obj)

    def patch(self, resource: str, object_name: str, patch: Mapping[str, Any]) -> Object:
        return self.world.merge(resource, object_name, patch)

    def delete(self, resource: str, object_name: str) -> None:
        self.world.delete(resource, object_name)

    def wait_for(self, step: str, condition: Callable[[View], Any], timeout: float = 60, **options: Any) -> Any:
        answer = self._moved_to(condition)
        if not answer:
            raise SceneEnded(step, str(answer), self.history.now())
        self.mark(step)
        return answer

    def settle(self, step: str, condition: Callable[[View], Any], timeout: float = 30, **options: Any) -> View:
        answer = self._moved_to(condition)
        self.mark(step, "" if answer else str(answer))
        return self.history.view()

    def settled(self, description: str, predicate: Callable[[View], Any], timeout: float = 30, **options: Any) -> View:
        self._moved_to(predicate)
        return self.history.view()

    def quiet(self, seconds: float = 2, timeout: float = 30, **options: Any) -> View:
        self._moved_to(lambda view: False)
        return self.history.view()

    def mark(self, step: str, unmet: str = "") -> None:
        self.steps[step] = Step.now(step, self.history, unmet)

    def _moved_to(self, condition: Callable[[View], Any]) -> Any:
        while not (answer := condition(self.history.view())):
            before = self.world.log.last_seq()
            self.world.control()
            for scheduler in self._schedulers:
                scheduler.cycle()
            if self.world.log.last_seq() == before:
                break
        return answer
