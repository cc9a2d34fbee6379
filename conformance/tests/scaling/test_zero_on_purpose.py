"""Tests that a clique or scaling group that is scaled to zero counts as idle and not as lost (GREP-677)."""

from __future__ import annotations

from conformance.grove.fields import condition_is, items, number, text, uid
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.disruption import BREACHED, CLIQUES, GANGS, GROUPS
from conformance.testing.scaled import pods_are, scale
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

DELAY_SECONDS = 4
"""The terminationDelay in seconds."""
CLIQUE, GROUP = "z-0-a", "z-0-g"
MEMBERS = {f"{GROUP}-{index}-{member}": 1 for index in range(2) for member in "bc"}
SIZES = {CLIQUE: 2, **MEMBERS}
IDLE_PARTS = {(CLIQUES, CLIQUE): {CLIQUE: 2}, (GROUPS, GROUP): MEMBERS}
"""Component → PodClique → number of pods, which equals the minimum. The components are scaled to zero one after the
other."""


class ScaledToZero(Scene):
    """One node with room for all pods. A set's clique is scaled to zero, stays at zero for longer than the
    terminationDelay, and is scaled back. Then the same happens to the set's scaling group."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        env.create(
            env.workload(
                "kept", setName="z", delay=f"{DELAY_SECONDS}s", groupsMinAvailable=1, members=1, membersMinAvailable=1
            )
        )
        env.wait_for("set available", predicates.is_available("z", 1))
        env.quiet(1)
        for (resource, part), sizes in IDLE_PARTS.items():
            env.mark(f"before {part} is idle")
            scale(env, resource, part, 0)
            env.wait_for(f"{part} has no pods", pods_are(dict.fromkeys(sizes, 0)))
            env.settle(f"no gang requires {part}", _are_not_required(sizes))
            env.quiet(DELAY_SECONDS + 3, real=True)
            env.mark(f"{part} idle for long")
            scale(env, resource, part, sum(size for clique, size in sizes.items() if not clique.endswith("b")))
            env.settle(f"{part} runs again", pods_are(sizes, ready=True), 60)
            env.settle(f"gangs require {part}", _are_required(sizes))
            env.quiet(1)
        env.mark("end")


@requirement("SCALE-016")
def test_an_idle_component_is_not_breached(run: Recorded[ScaledToZero]) -> None:
    for resource, part in IDLE_PARTS:
        status = condition_is(run.at(f"{part} idle for long").get(resource, part), BREACHED)
        run.expect(f"{BREACHED} of {part} is True", False, status == "True")


@requirement("SCALE-017")
def test_nothing_else_is_taken_down_and_the_zero_stays(run: Recorded[ScaledToZero]) -> None:
    for (resource, part), sizes in IDLE_PARTS.items():
        before, after = run.at(f"before {part} is idle"), run.at(f"{part} idle for long")
        run.same(f"PodCliques and Pods beside {part}", _other_uids(before, sizes), _other_uids(after, sizes))
        run.expect(f"replicas of {part}", 0, number(after.get(resource, part), "spec", "replicas"))
        run.expect(f"pods of {part}", 0, sum(len(predicates.pods_of(after, clique)) for clique in sizes))


@requirement("SCALE-018", reaches=tuple(f"no gang requires {part}" for _, part in IDLE_PARTS))
def test_no_gang_requires_an_idle_component(run: Recorded[ScaledToZero]) -> None:
    for (_, part), sizes in IDLE_PARTS.items():
        run.expect(
            f"minimums of {part} when it is idle", [], _pod_group_minimums(run.at(f"{part} idle for long"), sizes)
        )


@requirement("SCALE-019", reaches=tuple(f"{step} {part}" for _, part in IDLE_PARTS for step in ("gangs require",)))
def test_an_idle_component_wakes_up_with_its_minimum(run: Recorded[ScaledToZero]) -> None:
    run.given(*(f"{part} runs again" for _, part in IDLE_PARTS))
    ends = [*(f"before {part} is idle" for _, part in list(IDLE_PARTS)[1:]), "end"]
    for ((_, part), sizes), end in zip(IDLE_PARTS.items(), ends, strict=True):
        before, after = run.at(f"{part} idle for long"), run.at(end)
        run.same(f"PodCliques and Pods beside {part}", _other_uids(before, sizes), _other_uids(after, sizes))


test_invariants = invariants(ScaledToZero, "INV-001", "INV-004", "INV-005")


def _other_uids(view: View, idle: dict[str, int]) -> dict[str, list[str]]:
    """Return PodClique → its UID and the UIDs of its pods, for the PodCliques of the set that are not idle."""
    other_cliques = [clique for clique in SIZES if clique not in idle]
    return {
        clique: [uid(view.get(CLIQUES, clique)), *sorted(map(uid, predicates.pods_of(view, clique)))]
        for clique in other_cliques
    }


def _pod_group_minimums(view: View, cliques: dict[str, int]) -> list[tuple[str, int | None]]:
    """Return the minimums of these PodCliques in PodGangs. Minimums of zero are left out."""
    groups = [group for gang in view.list(GANGS) for group in items(gang, "spec", "podgroups")]
    all_minimums = [(text(group, "name"), number(group, "minReplicas")) for group in groups]
    return sorted((clique, minimum) for clique, minimum in all_minimums if clique in cliques and minimum)


@predicate
def _are_not_required(view: View, cliques: dict[str, int]) -> bool | Unmet:
    """No PodGang requires pods of these PodCliques."""
    minimums = _pod_group_minimums(view, cliques)
    return not minimums or Unmet(f"PodGangs require {minimums}")


@predicate
def _are_required(view: View, cliques: dict[str, int]) -> bool | Unmet:
    """Each PodClique is in a PodGang that requires all its pods."""
    minimums = _pod_group_minimums(view, cliques)
    return minimums == sorted(cliques.items()) or Unmet(f"PodGangs require {minimums}")
