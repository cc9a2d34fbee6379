"""Tests with sets of the same name in two namespaces. A name identifies an object only together with its namespace."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.expected import expected
from conformance.grove.fields import items, label, name, text, uid
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import deleted, predicates
from conformance.testing.disruption import CLIQUES, GROUPS, SETS
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

GPUS = 8
"""The GPUs of one dgx-h100 node. Each GPU pod fills a node."""
RESOURCES = (CLIQUES, GROUPS, "podgangs", "pods", "services")


class SetsOfOneName(Scene):
    """Two namespaces, each with a set of the same name, which has a base gang and a scaled gang of two nodes each.
    There are five nodes. The first set takes four nodes, so the second set does not fit. With one more node, the second
    set's base gang fits. After the first set is deleted, all of the second set fits."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 5)
        first = _workload(env)
        self.set_name, self.expected = name(first), expected(first)
        cliques = list(self.expected.cliques.values())
        self.base_cliques = [clique for clique in cliques if not clique.base_gang]
        self.scaled_cliques = [clique for clique in cliques if clique.base_gang]
        env.create(first)
        env.wait_for("first set bound", predicates.all_bound(cliques))

        neighbor = env.second_namespace()
        neighbor.create(_workload(neighbor))
        neighbor.wait_for("second set's base gang ungated", predicates.all_ungated(self.base_cliques))
        later = neighbor.workload("frontend", setName="later")
        neighbor.create(later)
        neighbor.wait_for("later set bound", predicates.all_bound(list(expected(later).cliques.values())))
        neighbor.wait_for("second set's pods exist", predicates.all_exist(cliques))
        neighbor.quiet(1)
        env.mark("second set tried")

        env.nodes("dgx-h100", 1)
        neighbor.wait_for("second set's base gang bound", predicates.all_bound(self.base_cliques))
        neighbor.wait_for("second set's scaled gang ungated", predicates.all_ungated(self.scaled_cliques))
        env.mark("deletion of the first set")
        before = env.history.view()
        env.delete(SETS, self.set_name)
        env.wait_for("first set gone", deleted.all_deleted(before, self.set_name), 150)
        neighbor.wait_for("second set bound", predicates.all_bound(cliques))
        neighbor.quiet(1)
        env.mark("the end")


@requirement("GANG-025", reaches=("second set's base gang ungated", "second set's scaled gang ungated"))
def test_sets_of_one_name_share_no_objects(run: Recorded[SetsOfOneName]) -> None:
    """The second set has its own objects. Its scaled gang waits for its own base gang, although the base gang of the
    first set is scheduled. The deletion of the first set deletes no object of the second set."""
    run.given("first set bound")
    ungated = predicates.none_ungated(run.scene.scaled_cliques)
    run.neighbor.always("no pod of the second set's scaled gang is ungated", ungated, until="second set tried")
    for ordinal, own_namespace, other_namespace in (("first", run, run.neighbor), ("second", run.neighbor, run)):
        view = own_namespace.at("deletion of the first set")
        existing_names = {
            resource: set(_uids_of_set(view, resource, run.scene.set_name)) for resource in _expected_names(run)
        }
        existing_names["services"] &= set(run.scene.expected.services)
        observed_names = {resource: sorted(names) for resource, names in existing_names.items()}
        run.expect(f"objects of the {ordinal} set", _expected_names(run), observed_names)
        objects_with_other_owner = _objects_with_owner(
            other_namespace.at("deletion of the first set"), view, run.scene.set_name
        )
        run.expect(f"objects of the {ordinal} set with an owner in the other namespace", [], objects_with_other_owner)
        run.expect(f"pods of other namespaces in gangs of the {ordinal} set", [], _foreign_pods(view))
    run.given("first set gone")
    steps = ("deletion of the first set", "the end")
    before, after = (_all_uids_of_set(run.neighbor.at(step), run.scene.set_name) for step in steps)
    run.same("objects of the second set after the deletion of the first", before, after)


@requirement("SCHED-009", reaches=("second set's base gang bound", "second set bound"))
def test_gangs_of_one_name_are_placed_apart(run: Recorded[SetsOfOneName]) -> None:
    run.given("first set bound", "later set bound")
    base = predicates.none_bound(run.scene.base_cliques)
    run.neighbor.always("no pod of the second set's base gang is bound", base, until="second set tried")


test_invariants = invariants(SetsOfOneName, "INV-001", "INV-005", "INV-009", "INV-010")


def _workload(env: SceneEnvironment) -> Object:
    gpus = {"prefillGpus": GPUS, "decodeGpus": GPUS}
    workload = env.workload("disaggregated", routers=1, workers=2, prefills=1, prefillsMinAvailable=1, **gpus)
    workload["spec"]["template"]["headlessServiceConfig"] = {"publishNotReadyAddresses": True}
    return workload


def _expected_names(run: Recorded[SetsOfOneName]) -> dict[str, list[str]]:
    expected_set = run.scene.expected
    names_by_resource = {CLIQUES: expected_set.cliques, GROUPS: expected_set.groups, "services": expected_set.services}
    return {resource: sorted(names) for resource, names in names_by_resource.items()}


def _uids_of_set(view: View, resource: str, set_name: str) -> dict[str, str]:
    """Return name → UID of the objects of a set."""
    return {name(item): uid(item) for item in view.list(resource) if label(item, labels.PART_OF) == set_name}


def _all_uids_of_set(view: View, set_name: str) -> dict[str, str]:
    """Return `resource/name` → UID for the objects of all kinds that belong to a set."""
    return {
        f"{resource}/{key}": object_uid
        for resource in RESOURCES
        for key, object_uid in _uids_of_set(view, resource, set_name).items()
    }


def _objects_with_owner(other: View, view: View, set_name: str) -> list[str]:
    """Return the objects of a set in `view` whose owner is an object in `other`."""
    owners = {uid(item) for resource in (SETS, *RESOURCES) for item in other.list(resource)}
    return [
        f"{resource}/{name(item)}"
        for resource in RESOURCES
        for item in view.list(resource)
        if label(item, labels.PART_OF) == set_name
        and any(text(owner, "uid") in owners for owner in items(item, "metadata", "ownerReferences"))
    ]


def _foreign_pods(view: View) -> list[str]:
    """Return the pods that gangs reference although they are not in the gang's namespace, as `gang: namespace/pod`."""
    return [
        f"{name(gang)}: {text(pod, 'namespace')}/{text(pod, 'name')}"
        for gang in view.list("podgangs")
        for group in items(gang, "spec", "podgroups")
        for pod in items(group, "podReferences")
        if text(pod, "namespace") != text(gang, "metadata", "namespace") or view.get("pods", text(pod, "name")) is None
    ]
