"""Tests of the parents of each clique, for each startup type, and of the init container in which pods wait for the
parents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.grove import startup, template
from conformance.grove.expected import ExpectedClique, expected
from conformance.grove.fields import Document, at, name, texts
from conformance.suite.outcomes.checks import ABSENT
from conformance.suite.scenes.api import Object
from conformance.testing import predicates
from conformance.testing.comparison import value_or_absent
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

ALIKE_SET = "alike"
"""The set in which the name of one clique is the end of the name of another clique."""


class SetsOfEachStartupType(Scene):
    """Two nodes with room for all pods. Three sets differ only in the startup type. In the fourth set, the base gang
    has two replicas of the scaling group. In the fifth set, a clique starts after a scaling group. In the last set, the
    name of one clique is the end of the name of another clique."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 2)
        types = {"any": "AnyOrder", "order": "InOrder", "explicit": "Explicit"}
        self.workloads = [
            *(
                env.workload(
                    "chain", setName=set_name, startup=f"CliqueStartupType{type_}", frontsMinAvailable=2, groups=3
                )
                for set_name, type_ in types.items()
            ),
            env.workload("chain", setName="order2", groups=3, groupsMinAvailable=2, leaders=2),
            env.workload("after-group"),
            env.workload(ALIKE_SET),
        ]
        for workload in self.workloads:
            env.create(workload)
        for workload in self.workloads:
            cliques = list(expected(workload).cliques.values())
            env.settle(pods_exist_step(workload), predicates.all_exist(cliques), timeout=60)
        env.mark("sets created")
        for workload in self.workloads:
            env.settle(available_step(workload), predicates.is_available(name(workload), 1), timeout=60)


def pods_exist_step(workload: Object) -> str:
    """Return the step at which all pods of a set exist."""
    return f"all pods of {name(workload)} exist"


def available_step(workload: Object) -> str:
    """Return the step at which a set is available."""
    return f"{name(workload)} is available"


@requirement("START-015")
def test_cliques_list_their_parents(run: Recorded[SetsOfEachStartupType]) -> None:
    """The parents are computed, with full names, from the templates of all sets."""
    cliques_with_parents, view = list(_cliques_with_parents(run.scene.workloads)), run.at("sets created")
    cliques = {entry.clique.name: view.get("podcliques", entry.clique.name) for entry in cliques_with_parents}
    actual = {
        clique_name: value_or_absent(clique, texts(clique, "spec", "startsAfter"))
        for clique_name, clique in cliques.items()
    }
    run.same(
        "startsAfter of cliques",
        {entry.clique.name: list(entry.parents) for entry in cliques_with_parents},
        actual,
    )


@requirement("START-006")
def test_pods_with_parents_have_the_init_container(run: Recorded[SetsOfEachStartupType]) -> None:
    """The pods are judged when all of them exist, and only if the sets become available with the init container."""
    for workload in run.scene.workloads:
        run.given(pods_exist_step(workload))
    expected_waiters, actual, view = {}, {}, run.at("sets created")
    for entry in _cliques_with_parents(run.scene.workloads):
        for pod in predicates.pods_of(view, entry.clique.name):
            expected_waiters[name(pod)], actual[name(pod)] = (
                bool(entry.parents),
                bool(startup.waiter(pod)),
            )
    run.same(f"pods that have {startup.WAITER}", expected_waiters, actual)
    for workload in run.scene.workloads:
        run.given(available_step(workload))


@requirement("START-007")
def test_the_arguments_are_the_parents_with_their_minimums(run: Recorded[SetsOfEachStartupType]) -> None:
    """The set ALIKE_SET is covered by START-009."""
    waiting_pods = [waiting_pod for waiting_pod in _waiting_pods(run) if waiting_pod.entry.set.name != ALIKE_SET]
    arguments = {waiting_pod.name: _expected_arguments(waiting_pod.entry.parents) for waiting_pod in waiting_pods}
    run.same(
        f"arguments of {startup.WAITER}",
        arguments,
        {waiting_pod.name: waiting_pod.observed(_container_arguments) for waiting_pod in waiting_pods},
    )


@requirement("START-008")
def test_the_init_container_mounts_token_and_gang(run: Recorded[SetsOfEachStartupType]) -> None:
    """Other components may have added more mounts and volumes."""
    waiting_pods = _waiting_pods(run)
    expected_mounts = startup.MOUNTS
    mounts = {
        waiting_pod.name: waiting_pod.observed(
            lambda pod: _limited_to(startup.mounts(startup.waiter(pod)), expected_mounts)
        )
        for waiting_pod in waiting_pods
    }
    run.same(f"mounts of {startup.WAITER}", dict.fromkeys(mounts, expected_mounts), mounts)
    expected_volumes = {waiting_pod.name: startup.volumes(waiting_pod.entry.set.name) for waiting_pod in waiting_pods}
    volumes = {waiting_pod.name: waiting_pod.observed(startup.observed_volumes) for waiting_pod in waiting_pods}
    actual = {
        key: _limited_to(value, expected_volumes[key]) if isinstance(value, Mapping) else value
        for key, value in volumes.items()
    }
    run.same("volumes of pods with parents", expected_volumes, actual)


@requirement("START-009")
def test_a_parent_is_not_taken_for_one_with_a_similar_name(run: Recorded[SetsOfEachStartupType]) -> None:
    """Only arguments with the minAvailable of the other clique are wrong."""
    waiting_pods = [waiting_pod for waiting_pod in _waiting_pods(run) if waiting_pod.entry.set.name == ALIKE_SET]
    wrong = {
        waiting_pod.name: waiting_pod.observed(waiting_pod.entry.arguments_of_namesakes) for waiting_pod in waiting_pods
    }
    run.same("arguments with the minAvailable of another clique", {key: [] for key in wrong}, wrong)


test_invariants = invariants(SetsOfEachStartupType, "INV-001", "INV-004", "INV-005", "INV-006")


@dataclass(frozen=True)
class _CliqueWithParents:
    """A clique with its parents, and the minAvailable of each parent."""

    set: template.SetTemplate
    clique: ExpectedClique
    parents: Mapping[str, int]

    def arguments_of_namesakes(self, pod: Document) -> list[str]:
        """Return the arguments that give a parent the minAvailable of a clique whose name is the end of the parent's
        name."""
        namesakes = {
            f"--podcliques={parent}:{clique.min_available}"
            for parent, min_available in self.parents.items()
            for clique in self.set.cliques
            if parent.endswith(clique.name) and clique.min_available != min_available
        }
        return sorted(namesakes.intersection(texts(startup.waiter(pod), "args")))


@dataclass(frozen=True)
class _WaitingPod:
    """A clique with parents, and one of its pods. The pod is None if the clique has no pods."""

    entry: _CliqueWithParents
    pod: Document | None

    @property
    def name(self) -> str:
        return name(self.pod) if self.pod else self.entry.clique.name

    def observed(self, read: Callable[[Document], object]) -> object:
        """Return the value that `read` reads from the pod, or ABSENT if the init container is missing. A missing init
        container is covered by START-006."""
        return read(self.pod) if self.pod and startup.waiter(self.pod) else ABSENT


def _cliques_with_parents(workloads: list[Object]) -> Iterator[_CliqueWithParents]:
    """Yield all cliques of the sets, with their parents."""
    for workload in workloads:
        pcs = template.read(workload)
        for clique in expected(workload).cliques.values():
            position = startup.clique_position(pcs, clique.name, clique.labels)
            assert position is not None, clique.name
            parents = startup.parents(pcs, position)
            assert parents is not None, "no workload of this scene asks for what the specification leaves open"
            yield _CliqueWithParents(pcs, clique, parents)


def _waiting_pods(run: Recorded[SetsOfEachStartupType]) -> list[_WaitingPod]:
    """Return the pods of all cliques with parents. A clique without pods has one entry."""
    view, waiters = run.at("sets created"), list[_WaitingPod]()
    for entry in _cliques_with_parents(run.scene.workloads):
        pods = predicates.pods_of(view, entry.clique.name) if entry.parents else []
        waiters += [_WaitingPod(entry, pod) for pod in pods]
        if entry.parents and not pods:
            waiters.append(_WaitingPod(entry, None))
    return waiters


def _expected_arguments(parents: Mapping[str, int]) -> list[str]:
    return [f"--podcliques={parent}:{minimum}" for parent, minimum in parents.items()]


def _container_arguments(pod: Document) -> Any:
    return at(startup.waiter(pod), "args")


def _limited_to(observed: Mapping[str, Any], keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of these keys. Other components may have added more keys."""
    return {key: observed.get(key) for key in keys}
