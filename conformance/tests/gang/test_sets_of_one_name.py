"""Sets of one name in two namespaces: the name of an object identifies it only together with its namespace."""

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
"""GPUs of one dgx-h100 node: each GPU pod fills a node."""
KINDS = (CLIQUES, GROUPS, "podgangs", "pods", "services")


class SetsOfOneName(Scene):
    """Two namespaces, each with a set of the same name: a base gang and a scaled gang of two nodes each. There are five
    nodes: the first set takes four, so the second one does not fit. With one node more its base gang fits; after the
    deletion of the first set, all of it fits."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 5)
        first = _workload(env)
        self.set_name, self.wanted = name(first), expected(first)
        every = list(self.wanted.cliques.values())
        self.based = [clique for clique in every if not clique.base_gang]
        self.scaled = [clique for clique in every if clique.base_gang]
        env.create(first)
        env.wait_for("first set bound", predicates.all_bound(every))

        beside = env.second_namespace()
        beside.create(_workload(beside))
        beside.wait_for("second set's base gang ungated", predicates.all_ungated(self.based))
        later = beside.workload("frontend", setName="later")
        beside.create(later)
        beside.wait_for("later set bound", predicates.all_bound(list(expected(later).cliques.values())))
        beside.wait_for("second set's pods exist", predicates.all_exist(every))
        beside.quiet(1)
        env.mark("second set tried")

        env.nodes("dgx-h100", 1)
        beside.wait_for("second set's base gang bound", predicates.all_bound(self.based))
        beside.wait_for("second set's scaled gang ungated", predicates.all_ungated(self.scaled))
        env.mark("deletion of the first set")
        before = env.history.view()
        env.delete(SETS, self.set_name)
        env.wait_for("first set gone", deleted.all_gone(before, self.set_name), 150)
        beside.wait_for("second set bound", predicates.all_bound(every))
        beside.quiet(1)
        env.mark("the end")


@requirement("GANG-025", reaches=("second set's base gang ungated", "second set's scaled gang ungated"))
def test_sets_of_one_name_share_no_objects(run: Recorded[SetsOfOneName]) -> None:
    """The second set has all objects of its own. Its scaled gang waits for its own base gang, although the base
    gang of the other set is scheduled. The deletion of the first set deletes nothing of it."""
    run.given("first set bound")
    ungated = predicates.none_ungated(run.scene.scaled)
    run.neighbor.always("no pod of the second set's scaled gang is ungated", ungated, until="second set tried")
    for what, each, other in (("first", run, run.neighbor), ("second", run.neighbor, run)):
        view = each.at("deletion of the first set")
        existing = {kind: set(_parts(view, kind, run.scene.set_name)) for kind in _names(run)}
        existing["services"] &= set(run.scene.wanted.services)
        run.expect(f"objects of the {what} set", _names(run), {kind: sorted(own) for kind, own in existing.items()})
        elsewhere = _owned_by(other.at("deletion of the first set"), view, run.scene.set_name)
        run.expect(f"objects of the {what} set with an owner in the other namespace", [], elsewhere)
        run.expect(f"pods of other namespaces in gangs of the {what} set", [], _strangers(view))
    run.given("first set gone")
    steps = ("deletion of the first set", "the end")
    before, after = (_all_parts(run.neighbor.at(step), run.scene.set_name) for step in steps)
    run.same("objects of the second set after the deletion of the first", before, after)


@requirement("SCHED-009", reaches=("second set's base gang bound", "second set bound"))
def test_gangs_of_one_name_are_placed_apart(run: Recorded[SetsOfOneName]) -> None:
    run.given("first set bound", "later set bound")
    base = predicates.none_bound(run.scene.based)
    run.neighbor.always("no pod of the second set's base gang is bound", base, until="second set tried")


test_invariants = invariants(SetsOfOneName, "INV-001", "INV-005", "INV-009", "INV-010")


def _workload(env: SceneEnvironment) -> Object:
    gpus = {"prefillGpus": GPUS, "decodeGpus": GPUS}
    workload = env.workload("disaggregated", routers=1, workers=2, prefills=1, prefillsMinAvailable=1, **gpus)
    workload["spec"]["template"]["headlessServiceConfig"] = {"publishNotReadyAddresses": True}
    return workload


def _names(run: Recorded[SetsOfOneName]) -> dict[str, list[str]]:
    wanted = run.scene.wanted
    kinds = {CLIQUES: wanted.cliques, GROUPS: wanted.groups, "services": wanted.services}
    return {kind: sorted(names) for kind, names in kinds.items()}


def _parts(view: View, kind: str, set_name: str) -> dict[str, str]:
    """Return name → UID of the objects of a set."""
    return {name(item): uid(item) for item in view.list(kind) if label(item, labels.PART_OF) == set_name}


def _all_parts(view: View, set_name: str) -> dict[str, str]:
    return {f"{kind}/{key}": found for kind in KINDS for key, found in _parts(view, kind, set_name).items()}


def _owned_by(other: View, view: View, set_name: str) -> list[str]:
    """Return the objects of a set in `view` that name an owner in `other`."""
    owners = {uid(item) for kind in (SETS, *KINDS) for item in other.list(kind)}
    return [
        f"{kind}/{name(item)}"
        for kind in KINDS
        for item in view.list(kind)
        if label(item, labels.PART_OF) == set_name
        and any(text(owner, "uid") in owners for owner in items(item, "metadata", "ownerReferences"))
    ]


def _strangers(view: View) -> list[str]:
    """Return the pods that gangs refer to and that are not in their namespace, as gang: namespace/pod."""
    return [
        f"{name(gang)}: {text(pod, 'namespace')}/{text(pod, 'name')}"
        for gang in view.list("podgangs")
        for group in items(gang, "spec", "podgroups")
        for pod in items(group, "podReferences")
        if text(pod, "namespace") != text(gang, "metadata", "namespace") or view.get("pods", text(pod, "name")) is None
    ]
