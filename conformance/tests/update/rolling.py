"""The scene of three updates with RollingRecreate in a row, and what its tests read of each of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from conformance.grove import labels, updates
from conformance.grove.expected import expected
from conformance.grove.fields import condition_is, label, name, number, uid
from conformance.history.query import predicate
from conformance.history.record import Record
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import disruption, incarnations, predicates
from conformance.testing.disruption import BREACHED
from conformance.testing.scaled import pods_are
from conformance.testing.scene import Exclusive, Recorded, Scene, SceneEnvironment, Span
from conformance.tests.update import changes
from conformance.tests.update.changes import CLIQUES, GROUPS, SETS

REPLICAS, SECONDS = 2, 150
CLIQUES_ALONE = [f"s-{index}-{clique}" for index in range(REPLICAS) for clique in ("a", "q")]
MEMBERS = {"g": {"b", "c"}, "h": {"d"}}
"""The cliques of each scaling group."""
SIZES_OF_GROUPS = {f"s-{index}-{group}": size for index in range(REPLICAS) for group, size in (("g", 2), ("h", 1))}


@dataclass(frozen=True)
class Change:
    """A change of these cliques to an image, and how often the operator is killed while it is rolled out."""

    cliques: tuple[str, ...]
    tag: str
    kills: int = 0


CHANGES = {
    "standalone": Change(("a",), "2"),
    "member": Change(("b",), "3"),
    "all": Change(("a", "b", "c", "d", "q"), "4", kills=2),
}


class SetUpdatedThreeTimes(Scene):
    """A set with two replicas, and nothing scarce. First a standalone clique is changed, of which a pod was replaced
    before, then a clique of the group g, then all cliques: the operator is killed twice while that is rolled out."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        workload = env.workload("rolling", setName="s", replicas=REPLICAS)
        self.sizes = {each.name: each.template.replicas for each in expected(workload).cliques.values()}
        env.create(workload)
        env.wait_for("set available", predicates.available("s", REPLICAS), SECONDS)
        env.quiet(1.2, real=True)
        oldest = disruption.by_index(env, "s-0-a")[0]
        env.delete("pods", name(oldest))
        env.wait_for("deleted pod replaced", pods_are({"s-0-a": 2}, ready=True, but=uid(oldest)))
        env.wait_for("replacement counted as Ready", changes.ready({"s-0-a": 2}))
        env.quiet(0.5)
        for each, change in CHANGES.items():
            self._update(env, workload, each, change)

    def _update(self, env: SceneEnvironment, workload: Object, each: str, change: Change) -> None:
        env.mark(f"{each}: change")
        first = incarnations.uids(env.history.view(), "pods").values()
        generation = changes.change(env, workload, *change.cliques, tag=change.tag)
        for share in sorted(env.random.uniform(0, 0.9) for _ in range(change.kills)):
            lost = int(share * sum(self.sizes.values()))
            env.settled(f"more than {lost} pods are deleted", _deleted(first, lost))
            env.roles.kill("operator")
            env.roles.restart("operator")
        env.wait_for(f"{each}: update ended", changes.done("s", generation), SECONDS)
        env.settle(f"{each}: counters at their totals", changes.rest_reported("s"), 30)
        env.settle(f"{each}: cliques and groups report the end", agreed)
        env.quiet(0.7)
        env.mark(f"{each}: at rest")


@dataclass(frozen=True)
class Update:
    """One of the updates, as it was recorded."""

    run: Recorded[SetUpdatedThreeTimes]
    each: str

    @property
    def span(self) -> Span:
        """From the change until everything is at rest."""
        return self.run.between(f"{self.each}: change", f"{self.each}: at rest")

    @property
    def generation(self) -> str:
        """The generation hash of the set before the change."""
        return updates.generation(self.span.begin().get(SETS, "s"))

    def of_set(self) -> list[Record]:
        """The states of the set that are of the new generation."""
        before = self.generation
        return [each for each in self.span.records(SETS, "s") if updates.generation(each.object) != before]

    def end(self) -> Record | None:
        """The first state of the set that reports the end of the update."""
        return next((record for record in self.of_set() if updates.ended(record.object)), None)

    def named(self, resource: str, each: str) -> set[str | int]:
        """What a clique or a group has named as selected, at that time or before."""
        return {one for record in self.span.records(resource, each) for one in updates.named(record.object)}


def replica(clique: str) -> str:
    """The replica of the set that a clique belongs to."""
    return clique.partition("-")[2].partition("-")[0]


def replica_of_group(clique: str) -> str:
    """The replica of the group g that a clique belongs to, empty for any other."""
    return clique.rpartition("-")[0] if clique.startswith(tuple(f"s-{index}-g-" for index in range(REPLICAS))) else ""


def hashes(view: View, cliques: Iterable[str]) -> dict[str, str]:
    """Clique → the hash of its template, from its label."""
    return {clique: label(view.get(CLIQUES, clique), labels.TEMPLATE_HASH) for clique in cliques}


# -- what cliques and groups report ------------------------------------------------------------------------------------


def agreed(view: View) -> bool:
    """Cliques and groups report what they have to in the end; each is judged after it."""
    counts = [updates.counts(view.get(GROUPS, each)) for each in SIZES_OF_GROUPS]
    complete = all(each["updatedPodCliquesCount"] == each["totalPodCliquesCount"] for each in counts)
    sound = set(breaches(view).values()) == {"False"}
    told = not behind(view) and not selecting(view)
    return complete and sound and told and updated_replicas(view) == SIZES_OF_GROUPS


def updated_replicas(view: View) -> dict[str, int | None]:
    """The updatedReplicas of each group."""
    return {each: number(view.get(GROUPS, each), "status", "updatedReplicas") for each in SIZES_OF_GROUPS}


def breaches(view: View) -> Mapping[str, str]:
    """The status of MinAvailableBreached of each standalone clique."""
    return {each: condition_is(view.get(CLIQUES, each), BREACHED) for each in CLIQUES_ALONE}


def concerned(change: str) -> list[str]:
    """The standalone cliques and groups that one of the changes is about."""
    cliques = CHANGES[change].cliques
    alone = [each for each in CLIQUES_ALONE if each.rpartition("-")[2] in cliques]
    return alone + [each for each in SIZES_OF_GROUPS if MEMBERS[each.rpartition("-")[2]] & set(cliques)]


def selecting(view: View) -> list[str]:
    """The standalone cliques and groups that report a selection."""
    parts = [*((CLIQUES, each) for each in CLIQUES_ALONE), *((GROUPS, each) for each in SIZES_OF_GROUPS)]
    return [each for kind, each in parts if updates.selection(view.get(kind, each)) is not None]


def behind(view: View, parts: Iterable[str] = (*CLIQUES_ALONE, *SIZES_OF_GROUPS)) -> list[str]:
    """What standalone cliques and groups report that is not of an update that has ended."""
    wrong, generation = [], updates.generation(view.get(SETS, "s"))
    for kind, each in [(CLIQUES if each in CLIQUES_ALONE else GROUPS, each) for each in parts]:
        found = view.get(kind, each)
        if not updates.ended(found):
            wrong.append(f"{each}: its update has not ended")
        reached = updates.reached(found)
        if reached.get("currentPodCliqueSetGenerationHash") != generation:
            wrong.append(f"{each}: is not of the set's generation")
        targets = updates.targets(found) if kind == CLIQUES else {}
        late = [field for field, hash in targets.items() if reached.get(field) != hash]
        wrong += [f"{each}: {field} is not the one that its progress names" for field in late]
    return wrong


@predicate
def _deleted(view: View, first: Collection[str], count: int) -> bool:
    """More of these pods (uids) than that are deleted, or being deleted."""
    return len(set(first) - set(incarnations.uids(view, "pods").values())) > count
