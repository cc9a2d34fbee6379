"""A scene with three successive updates with RollingRecreate, and functions that read each update from its
recording."""

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

REPLICAS, TIMEOUT_SECONDS = 2, 150
STANDALONE_CLIQUES = [f"s-{index}-{clique}" for index in range(REPLICAS) for clique in ("a", "q")]
MEMBERS = {"g": {"b", "c"}, "h": {"d"}}
"""Scaling group → its cliques."""
GROUP_SIZES = {f"s-{index}-{group}": size for index in range(REPLICAS) for group, size in (("g", 2), ("h", 1))}


@dataclass(frozen=True)
class Change:
    """A change of the image of some cliques, and the number of times that the operator is killed during its rollout."""

    cliques: tuple[str, ...]
    tag: str
    kills: int = 0


CHANGES = {
    "standalone": Change(("a",), "2"),
    "member": Change(("b",), "3"),
    "all": Change(("a", "b", "c", "d", "q"), "4", kills=2),
}


class SetUpdatedThreeTimes(Scene):
    """A set with two replicas, and ample capacity. First a standalone clique is changed. One of its pods was replaced
    before. Then a clique of the group g is changed. Then all cliques are changed, and the operator is killed twice
    during that rollout."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        workload = env.workload("rolling", setName="s", replicas=REPLICAS)
        self.sizes = {clique.name: clique.template.replicas for clique in expected(workload).cliques.values()}
        env.create(workload)
        env.wait_for("set available", predicates.is_available("s", REPLICAS), TIMEOUT_SECONDS)
        env.quiet(1.2, real=True)
        oldest = disruption.pods_by_index(env, "s-0-a")[0]
        env.delete("pods", name(oldest))
        env.wait_for("deleted pod replaced", pods_are({"s-0-a": 2}, ready=True, excluded_uid=uid(oldest)))
        env.wait_for("replacement counted as Ready", changes.report_ready({"s-0-a": 2}))
        env.quiet(0.5)
        for change_name, change in CHANGES.items():
            self._update(env, workload, change_name, change)

    def _update(self, env: SceneEnvironment, workload: Object, change_name: str, change: Change) -> None:
        env.mark(f"{change_name}: change")
        first_uids = incarnations.uids(env.history.view(), "pods").values()
        generation = changes.change_image(env, workload, *change.cliques, tag=change.tag)
        for share in sorted(env.random.uniform(0, 0.9) for _ in range(change.kills)):
            lost = int(share * sum(self.sizes.values()))
            env.settled(f"more than {lost} pods are deleted", _deleted(first_uids, lost))
            env.roles.kill("operator")
            env.roles.restart("operator")
        env.wait_for(f"{change_name}: update ended", changes.has_ended("s", generation), TIMEOUT_SECONDS)
        env.settle(f"{change_name}: counters at their totals", changes.reports_rest("s"), 30)
        env.settle(f"{change_name}: cliques and groups report the end", all_report_end)
        env.quiet(0.7)
        env.mark(f"{change_name}: at rest")


@dataclass(frozen=True)
class Update:
    """One of the updates, as recorded."""

    run: Recorded[SetUpdatedThreeTimes]
    change: str

    @property
    def span(self) -> Span:
        """Return the span of the history from the change until everything is at rest."""
        return self.run.between(f"{self.change}: change", f"{self.change}: at rest")

    @property
    def generation(self) -> str:
        """Return the generation hash of the set before the change."""
        return updates.generation_hash(self.span.start_view().get(SETS, "s"))

    def of_set(self) -> list[Record]:
        """Return the states of the set that have the new generation hash."""
        before = self.generation
        return [record for record in self.span.records(SETS, "s") if updates.generation_hash(record.object) != before]

    def end(self) -> Record | None:
        """Return the first state of the set that reports the end of the update."""
        return next((record for record in self.of_set() if updates.has_ended(record.object)), None)

    def reported_selections(self, resource: str, part: str) -> set[str | int]:
        """Return the pods or replicas that a clique or a group has reported as selected, at any time in the update."""
        return {
            selected
            for record in self.span.records(resource, part)
            for selected in updates.listed_selections(record.object)
        }


def replica_of(clique: str) -> str:
    """Return the index of the set replica to which a clique belongs."""
    return clique.partition("-")[2].partition("-")[0]


def replica_of_group(clique: str) -> str:
    """Return the replica of the group g to which a clique belongs, or an empty string for any other clique."""
    return clique.rpartition("-")[0] if clique.startswith(tuple(f"s-{index}-g-" for index in range(REPLICAS))) else ""


def hash_by_clique(view: View, cliques: Iterable[str]) -> dict[str, str]:
    """Return the template hash of each clique, from its label."""
    return {clique: label(view.get(CLIQUES, clique), labels.TEMPLATE_HASH) for clique in cliques}


# -- what cliques and groups report ------------------------------------------------------------------------------------


def all_report_end(view: View) -> bool:
    """All cliques and groups report the complete end of the update. Separate tests judge each of these reports."""
    counts = [updates.counts(view.get(GROUPS, group)) for group in GROUP_SIZES]
    complete = all(count["updatedPodCliquesCount"] == count["totalPodCliquesCount"] for count in counts)
    sound = set(breaches(view).values()) == {"False"}
    ended = not behind(view) and not selecting(view)
    return complete and sound and ended and updated_replicas(view) == GROUP_SIZES


def updated_replicas(view: View) -> dict[str, int | None]:
    """Return group → its updatedReplicas."""
    return {group: number(view.get(GROUPS, group), "status", "updatedReplicas") for group in GROUP_SIZES}


def breaches(view: View) -> Mapping[str, str]:
    """Return standalone clique → its status of MinAvailableBreached."""
    return {clique: condition_is(view.get(CLIQUES, clique), BREACHED) for clique in STANDALONE_CLIQUES}


def concerned(change: str) -> list[str]:
    """Return the standalone cliques and groups that one of the changes affects."""
    cliques = CHANGES[change].cliques
    standalone = [part for part in STANDALONE_CLIQUES if part.rpartition("-")[2] in cliques]
    return standalone + [part for part in GROUP_SIZES if MEMBERS[part.rpartition("-")[2]] & set(cliques)]


def selecting(view: View) -> list[str]:
    """Return the standalone cliques and groups that report a selection."""
    parts = [*((CLIQUES, part) for part in STANDALONE_CLIQUES), *((GROUPS, part) for part in GROUP_SIZES)]
    return [part for resource, part in parts if updates.selection(view.get(resource, part)) is not None]


def behind(view: View, parts: Iterable[str] = (*STANDALONE_CLIQUES, *GROUP_SIZES)) -> list[str]:
    """Return descriptions of reports of standalone cliques and groups that are inconsistent with an update that has
    ended."""
    wrong, generation = [], updates.generation_hash(view.get(SETS, "s"))
    for resource, part in [(CLIQUES if part in STANDALONE_CLIQUES else GROUPS, part) for part in parts]:
        current = view.get(resource, part)
        if not updates.has_ended(current):
            wrong.append(f"{part}: its update has not ended")
        reached = updates.reached_hashes(current)
        if reached.get("currentPodCliqueSetGenerationHash") != generation:
            wrong.append(f"{part}: is not of the set's generation")
        targets = updates.target_hashes(current) if resource == CLIQUES else {}
        outdated = [field for field, hash in targets.items() if reached.get(field) != hash]
        wrong += [f"{part}: {field} is not the one that its progress names" for field in outdated]
    return wrong


@predicate
def _deleted(view: View, first_uids: Collection[str], count: int) -> bool:
    """More than `count` of these pods (UIDs) are deleted or being deleted."""
    return len(set(first_uids) - set(incarnations.uids(view, "pods").values())) > count
