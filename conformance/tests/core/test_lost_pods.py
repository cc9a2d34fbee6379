"""Tests that pods that are deleted or fail are replaced with the same index, and that the clique reports the loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import dropwhile
from typing import Any

from conformance.grove import health, labels
from conformance.grove.expected import expected
from conformance.grove.fields import condition_is, items, label, name, number, text, uid
from conformance.history.query import Unmet, predicate
from conformance.history.record import Record
from conformance.history.view import View
from conformance.invariants.status_at_rest import REST_SECONDS
from conformance.testing import disruption, predicates
from conformance.testing.composition import gang_of
from conformance.testing.disruption import BREACHED, CLIQUES, GANGS, GROUPS, SETS
from conformance.testing.scaled import pods_are
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.core import reports

CONDITIONS_BELOW_MINIMUM = {"PodCliqueScheduled": "False", BREACHED: "True"}
OPERATORS_OBJECTS = frozenset({SETS, GROUPS, CLIQUES, "services"})
"""The resources that only the operator writes."""
WRITTEN_RESOURCES = OPERATORS_OBJECTS | {GANGS, "pods"}


class PodsLostOneByOne(Scene):
    """A set with one clique of three pods on one node. A pod is deleted and replaced, and the set comes to rest. Then
    the node is cordoned, so that nothing more can be placed. A pod fails, and finally all pods are deleted."""

    def play(self, env: SceneEnvironment) -> None:
        nodes = env.nodes("tiny", 1)
        workload = env.workload("frontend", setName="s", pods=3)
        [clique] = expected(workload).cliques
        self.clique = clique
        env.create(workload)
        env.wait_for("all pods ready", reports.has_counts(clique, {"readyReplicas": 3}))
        self.initial_pods = initial_pods = _pods_by_index(env.history.view(), clique)

        env.delete("pods", name(initial_pods["1"]))
        env.wait_for("deleted pod replaced", _is_replaced(clique, uid(initial_pods["1"]), "1"))
        self.replacement_pods = replacement_pods = _pods_by_index(env.history.view(), clique)
        env.wait_for(
            "gang refers to the new pod", _gang_references(clique, {name(pod) for pod in replacement_pods.values()})
        )
        env.wait_for("all pods ready again", pods_are({clique: 3}, ready=True))
        env.wait_for("clique reports all pods ready again", reports.has_counts(clique, {"readyReplicas": 3}))

        # Statuses may still change until they reflect the replacement.
        env.wait_for("set available again", predicates.is_available("s", 1))
        quiet_start = env.machine.now()
        env.quiet(2, real=True, of=WRITTEN_RESOURCES)
        env.mark("nothing changes")
        quiet_mark = env.history.mark()
        env.quiet(3, real=True)
        env.mark("nothing has changed")
        if any(record.resource in OPERATORS_OBJECTS for record in env.history.records(after=quiet_mark)):
            env.machine.require(quiet_start, "statuses had caught up before the quiet time")
        # A status that is written once more may simply be late. A status that is written again and again is written at
        # least twice in this time.
        env.quiet(1.5 * REST_SECONDS, 6 * REST_SECONDS, real=True, of=WRITTEN_RESOURCES)

        disruption.cordon(env, nodes)
        self._fail(env, replacement_pods["2"])
        env.settle("failed pod not counted", reports.has_counts(clique, {"scheduledReplicas": 2}), 60)
        env.settle("clique reports too few pods", reports.has_conditions(clique, CONDITIONS_BELOW_MINIMUM), 60)

        for pod in predicates.pods_of(env.history.view(), clique):
            env.delete("pods", name(pod))
        env.wait_for("no pod scheduled", reports.has_counts(clique, {"scheduledReplicas": 0}))
        env.quiet(1)
        env.mark("all pods lost")
        env.wait_for("Warning event about the clique", reports.has_warning(clique), resources=["events"])

    def _fail(self, env: SceneEnvironment, pod: Mapping[str, Any]) -> None:
        """Make a pod fail. If the pod is not replaced, delete it so that the scene can go on."""
        env.patch("pods", name(pod), {"metadata": {"annotations": {health.HOLD_STATUS: "yes"}}})
        env.patch("pods", name(pod), {"status": {"phase": "Failed", "reason": "Evicted"}}, subresource="status")
        env.settle("failed pod is no replica", _reports_running_pods(self.clique), 60)
        is_replaced = _is_replaced(self.clique, uid(pod), label(pod, labels.POD_INDEX))
        if not is_replaced(env.settle("failed pod replaced", is_replaced, 60)):
            env.delete("pods", name(pod))


@requirement("CORE-022", reaches="deleted pod replaced")
def test_a_lost_pod_is_replaced_in_its_place(run: Recorded[PodsLostOneByOne]) -> None:
    """The other pods are identified by their UIDs."""
    run.given("all pods ready")
    uids = {index: uid(run.scene.initial_pods[index]) for index in ("0", "2")}
    run.expect("the other pods", uids, {index: uid(run.scene.replacement_pods.get(index, {})) for index in uids})


@requirement("CORE-023", reaches="Warning event about the clique")
def test_a_clique_without_scheduled_pods_warns(run: Recorded[PodsLostOneByOne]) -> None:
    """The node is cordoned, so no new pod is scheduled."""
    run.given("no pod scheduled")


@requirement("CORE-024")
def test_nothing_is_written_while_nothing_changes(run: Recorded[PodsLostOneByOne]) -> None:
    """Gangs and pods are left out because they have other writers."""
    run.given("set available again")
    records = run.between("nothing changes", "nothing has changed").records()
    written_objects = [f"{record.resource}/{record.name}" for record in records if record.resource in OPERATORS_OBJECTS]
    run.expect("objects that changed while nothing happened", [], written_objects)


@requirement("CORE-026", reaches=("failed pod replaced", "failed pod not counted"))
def test_a_failed_pod_is_replaced_and_not_counted(run: Recorded[PodsLostOneByOne]) -> None:
    """The node is cordoned, so only the two other pods are scheduled."""


@requirement("CORE-043", reaches="failed pod is no replica")
def test_a_failed_pod_is_no_replica(run: Recorded[PodsLostOneByOne]) -> None:
    """The failed pod may or may not be replaced, and may or may not be deleted."""
    run.given("set available again")


@requirement("CORE-027", reaches="clique reports too few pods")
def test_a_clique_reports_that_too_few_pods_are_scheduled(run: Recorded[PodsLostOneByOne]) -> None:
    """The conditions are judged while some pods are scheduled, and when no pod is left."""
    view = run.at("all pods lost")
    lost_conditions = {
        condition_type: condition_is(view.get(CLIQUES, run.scene.clique), condition_type)
        for condition_type in CONDITIONS_BELOW_MINIMUM
    }
    run.expect("conditions of a clique that has lost all pods", CONDITIONS_BELOW_MINIMUM, lost_conditions)


@requirement("GANG-009", reaches="gang refers to the new pod")
def test_a_gang_refers_to_the_replacement(run: Recorded[PodsLostOneByOne]) -> None:
    """The gang has one PodGroup, which must reference the three pods that exist at that time."""


@requirement("GANG-028")
def test_a_gang_stays_initialized_while_a_pod_is_replaced(run: Recorded[PodsLostOneByOne]) -> None:
    """The records from the first initialized state of the gang until the replacement is Ready are judged."""
    run.given("gang refers to the new pod")
    gang = gang_of(run.at("gang refers to the new pod"), run.scene.clique)
    records = run.until("clique reports all pods ready again").records(GANGS, name(gang))
    run.expect("states in which the gang was no longer Initialized", [], _lost_initializations(records))


test_invariants = invariants(PodsLostOneByOne, "INV-001", "INV-004", "INV-005", "INV-007", "INV-025")


def _pods_by_index(view: View, clique: str) -> dict[str, Mapping[str, Any]]:
    return {label(pod, labels.POD_INDEX): pod for pod in predicates.pods_of(view, clique)}


@predicate
def _is_replaced(view: View, clique: str, lost_uid: str, index: str) -> bool | Unmet:
    """A clique has a pod with this index whose UID is not `lost_uid`."""
    pods = [pod for pod in predicates.pods_of(view, clique) if label(pod, labels.POD_INDEX) == index]
    return any(uid(pod) != lost_uid for pod in pods) or Unmet(f"there is no new pod with index {index}")


@predicate
def _reports_running_pods(view: View, clique: str) -> bool | Unmet:
    """The number of replicas that a clique reports equals the number of its pods that have not ended."""
    clique_pods = predicates.pods_of(view, clique)
    running_pods = sum(text(pod, "status", "phase") not in ("Failed", "Succeeded") for pod in clique_pods)
    reported = number(view.get(CLIQUES, clique), "status", "replicas")
    return reported == running_pods or Unmet(
        f"{clique} reports {reported} replicas, and {running_pods} of its pods have not ended"
    )


@predicate
def _gang_references(view: View, clique: str, pod_names: set[str]) -> bool | Unmet:
    """The podReferences of a clique's gang are these pods, in any order."""
    groups = items(gang_of(view, clique), "spec", "podgroups")
    references = sorted(text(reference, "name") for group in groups for reference in items(group, "podReferences"))
    return references == sorted(pod_names) or Unmet(
        f"the gang of {clique} refers to {references}, not to {sorted(pod_names)}"
    )


def _lost_initializations(records: Iterable[Record]) -> list[str]:
    """Return the records after the gang's first Initialized=True in which the gang is not initialized."""
    initialized = dropwhile(lambda record: not _is_initialized(record), records)
    return [str(record) for record in initialized if not _is_initialized(record)]


def _is_initialized(record: Record) -> bool:
    return condition_is(record.object, "Initialized") == "True"
